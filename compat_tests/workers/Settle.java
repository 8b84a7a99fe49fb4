import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.ProducerIdAndEpoch;

/**
 * Ends a transaction that a producer, now dead, left open.
 *
 *     java Settle.java BOOTSTRAP TRANSACTIONAL_ID commit|abort PRODUCER_ID EPOCH
 *     java Settle.java BOOTSTRAP TRANSACTIONAL_ID fence
 *
 * `commit` and `abort` resume it, as Flink's sink does when it is restored from a checkpoint: the stock producer has no
 * call for that, so its transaction manager learns by reflection that it is in this transaction. `fence` is what
 * Kafka Connect does before it starts a source task anew.
 */
public class Settle {
    public static void main(String[] args) throws Exception {
        if (args[2].equals("fence")) {
            try (Admin admin = Admin.create(Map.<String, Object>of("bootstrap.servers", args[0]))) {
                admin.fenceProducers(List.of(args[1])).all().get();
            }
            return;
        }
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", args[1]);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            resume(field(producer, "transactionManager"), Long.parseLong(args[3]), Short.parseShort(args[4]));
            if (args[2].equals("commit")) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private static void resume(Object manager, long producerId, short epoch) throws Exception {
        synchronized (manager) {
            transition(manager, "INITIALIZING");
            set(manager, "producerIdAndEpoch", new ProducerIdAndEpoch(producerId, epoch));
            transition(manager, "READY");
            transition(manager, "IN_TRANSACTION");
            set(manager, "transactionStarted", true);
        }
    }

    private static void transition(Object manager, String to) throws Exception {
        Class<?> states = Class.forName(manager.getClass().getName() + "$State");
        Method method = manager.getClass().getDeclaredMethod("transitionTo", states);
        method.setAccessible(true);
        for (Object state : states.getEnumConstants()) {
            if (state.toString().equals(to)) {
                method.invoke(manager, state);
            }
        }
    }

    private static Object field(Object owner, String name) throws Exception {
        return accessible(owner, name).get(owner);
    }

    private static void set(Object owner, String name, Object value) throws Exception {
        accessible(owner, name).set(owner, value);
    }

    private static Field accessible(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }
}
