import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.KafkaSinkBuilder;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * A Flink job that reads `clicks` and writes two topics, each in transactions of its own.
 *
 *     flink run tally.jar BOOTSTRAP GROUP CHECKPOINT_MS TRANSACTION_MS LATE_MS WINDOW_MS NAMING
 *
 * A click is USER/NAME. `numbered` has for every click its user as the key, and NAME@N, where N is how many clicks of
 * this user there were: a click that was counted twice, or a count that was lost, shows in every later one. `windows`
 * has for every user and window of event time USER@START and the number of clicks, once, when the window is past.
 * NAMING is a TransactionNamingStrategy, or `default`: connectors before 4.0 have no choice.
 */
public class Tally {
    private static final char BETWEEN = '/';

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        Duration late = Duration.ofMillis(Long.parseLong(args[4]));
        Duration window = Duration.ofMillis(Long.parseLong(args[5]));
        StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
        job.enableCheckpointing(Long.parseLong(args[2]));
        KafkaSource<String> source = KafkaSource.<String>builder()
            .setBootstrapServers(bootstrap)
            .setTopics("clicks")
            .setGroupId(args[1])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .setProperty("isolation.level", "read_committed")
            .setProperty("partition.discovery.interval.ms", "1000")
            .build();
        KeyedStream<String, String> clicks = job
            .fromSource(source, WatermarkStrategy.forBoundedOutOfOrderness(late), "clicks")
            .uid("clicks")
            .keyBy(Tally::user);
        clicks.process(new Number()).uid("number")
            .sinkTo(sink(bootstrap, "numbered", args[3], args[6])).uid("numbered");
        clicks.window(TumblingEventTimeWindows.of(window)).process(new Count()).uid("count")
            .sinkTo(sink(bootstrap, "windows", args[3], args[6])).uid("windows");
        job.execute("tally");
    }

    private static KafkaSink<String> sink(String bootstrap, String topic, String timeoutMs, String naming)
            throws ReflectiveOperationException {
        KafkaSinkBuilder<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(bootstrap)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix(topic)
            .setProperty("transaction.timeout.ms", timeoutMs)
            // what a transaction has written so far is in the log at once
            .setProperty("linger.ms", "0")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                .setTopic(topic)
                .setKeySerializationSchema(new Key())
                .setValueSerializationSchema(new Value())
                .build());
        if (!naming.equals("default")) {
            Class<?> strategy = Class.forName("org.apache.flink.connector.kafka.sink.TransactionNamingStrategy");
            Object chosen = strategy.getField(naming).get(null);
            sink.getClass().getMethod("setTransactionNamingStrategy", strategy).invoke(sink, chosen);
        }
        return sink.build();
    }

    private static String user(String line) {
        return line.substring(0, line.indexOf(BETWEEN));
    }

    /** USER/REST -> USER. A class, since Flink looks for the type that a schema takes. */
    private static class Key implements SerializationSchema<String> {
        @Override
        public byte[] serialize(String line) {
            return user(line).getBytes();
        }
    }

    /** USER/REST -> REST. */
    private static class Value implements SerializationSchema<String> {
        @Override
        public byte[] serialize(String line) {
            return line.substring(user(line).length() + 1).getBytes();
        }
    }

    /** USER/NAME -> USER/NAME@N. */
    private static class Number extends KeyedProcessFunction<String, String, String> {
        private transient ValueState<Long> count;

        @Override
        public void open(OpenContext context) {
            count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
        }

        @Override
        public void processElement(String click, Context context, Collector<String> out) throws Exception {
            long number = count.value() == null ? 1 : count.value() + 1;
            count.update(number);
            out.collect(click + "@" + number);
        }
    }

    /** The clicks of one user in one window -> USER/START@COUNT. */
    private static class Count extends ProcessWindowFunction<String, String, String, TimeWindow> {
        @Override
        public void process(String user, Context context, Iterable<String> clicks, Collector<String> out) {
            long count = 0;
            for (String click : clicks) {
                count++;
            }
            out.collect(user + BETWEEN + context.window().getStart() + "@" + count);
        }
    }
}
