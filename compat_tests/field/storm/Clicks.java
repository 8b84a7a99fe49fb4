import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.kafka.bolt.KafkaBolt;
import org.apache.storm.kafka.bolt.mapper.FieldNameBasedTupleToKafkaMapper;
import org.apache.storm.kafka.spout.FirstPollOffsetStrategy;
import org.apache.storm.kafka.spout.KafkaSpout;
import org.apache.storm.kafka.spout.KafkaSpoutConfig;
import org.apache.storm.kafka.spout.KafkaSpoutConfig.ProcessingGuarantee;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutConfig;
import org.apache.storm.kafka.spout.trident.KafkaTridentSpoutOpaque;
import org.apache.storm.kafka.trident.TridentKafkaStateFactory;
import org.apache.storm.kafka.trident.TridentKafkaStateUpdater;
import org.apache.storm.kafka.trident.selector.DefaultTopicSelector;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseRichBolt;
import org.apache.storm.trident.TridentTopology;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * A Storm topology in a cluster within this process. It reads `clicks` and writes `counted`.
 *
 *     java Clicks.java BOOTSTRAP GROUP GUARANTEE
 *
 * The value of a click says what becomes of it. `fails...` is failed when it is seen first, and `held...` is neither
 * acked nor failed by a process in whose arguments HELD is last. Everything else goes to `counted` as VALUE@N, where N
 * is how many clicks of its partition this process has counted. GUARANTEE is a ProcessingGuarantee, or `TRIDENT`: then
 * values are copied as they are. It runs until its input is closed.
 */
public class Clicks {
    private static final Fields CLICK = new Fields("key", "value");

    public static void main(String[] args) throws Exception {
        boolean isHolding = args[args.length - 1].equals("HELD");
        StormTopology topology = args[2].equals("TRIDENT")
            ? trident(args[0], args[1])
            : acking(args[0], args[1], ProcessingGuarantee.valueOf(args[2]), isHolding);
        Config config = new Config();
        config.setMessageTimeoutSecs(3_600);
        config.put(Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS, 100);
        try (LocalCluster cluster = new LocalCluster.Builder().build();
                LocalCluster.LocalTopology running = cluster.submitTopology("clicks", config, topology)) {
            System.out.println("submitted");
            while (System.in.read() >= 0) {
            }
            // the process is at its end, and a cluster in it takes long to close
            Runtime.getRuntime().halt(0);
        }
    }

    private static StormTopology acking(String bootstrap, String group, ProcessingGuarantee guarantee, boolean holds) {
        KafkaSpoutConfig<String, String> spout = KafkaSpoutConfig.builder(bootstrap, "clicks")
            .setProp("group.id", group)
            .setProp("metadata.max.age.ms", 1_000)
            .setProcessingGuarantee(guarantee)
            .setTupleTrackingEnforced(true)
            .setOffsetCommitPeriodMs(200)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
            .build();
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("clicks", new KafkaSpout<>(spout), 2);
        builder.setBolt("count", new Count(holds), 2).fieldsGrouping("clicks", new Fields("partition"));
        builder.setBolt("counted", new KafkaBolt<String, String>()
            .withProducerProperties(producer(bootstrap))
            .withTopicSelector("counted")
            .withTupleToKafkaMapper(new FieldNameBasedTupleToKafkaMapper<>("key", "value")), 2)
            .shuffleGrouping("count");
        return builder.createTopology();
    }

    private static StormTopology trident(String bootstrap, String group) {
        KafkaTridentSpoutConfig<String, String> spout = KafkaTridentSpoutConfig.builder(bootstrap, "clicks")
            .setProp("group.id", group)
            .setFirstPollOffsetStrategy(FirstPollOffsetStrategy.EARLIEST)
            .build();
        TridentTopology topology = new TridentTopology();
        topology.newStream("clicks", new KafkaTridentSpoutOpaque<>(spout))
            .parallelismHint(2)
            .partitionPersist(
                new TridentKafkaStateFactory()
                    .withProducerProperties(producer(bootstrap))
                    .withKafkaTopicSelector(new DefaultTopicSelector("counted"))
                    .withTridentTupleToKafkaMapper(
                        new org.apache.storm.kafka.trident.mapper.FieldNameBasedTupleToKafkaMapper<>("key", "value")),
                CLICK,
                new TridentKafkaStateUpdater(),
                new Fields());
        return topology.build();
    }

    private static Properties producer(String bootstrap) {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, StringSerializer.class.getName());
        return settings;
    }

    /** Counts the clicks of each partition in its memory; each of its tuples is anchored to the click. */
    private static class Count extends BaseRichBolt {
        private final boolean isHolding;
        private transient Map<Integer, Integer> counts;
        private transient Set<String> failed;
        private transient OutputCollector out;

        Count(boolean isHolding) {
            this.isHolding = isHolding;
        }

        @Override
        public void prepare(Map<String, Object> config, TopologyContext context, OutputCollector collector) {
            counts = new HashMap<>();
            failed = new HashSet<>();
            out = collector;
        }

        @Override
        public void execute(Tuple click) {
            Integer partition = click.getIntegerByField("partition");
            String value = click.getStringByField("value");
            if (isHolding && value.startsWith("held")) {
                return;
            }
            if (value.startsWith("fails") && failed.add(value)) {
                out.fail(click);
                return;
            }
            out.emit(click, new Values(partition.toString(), value + "@" + counts.merge(partition, 1, Integer::sum)));
            out.ack(click);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(CLICK);
        }
    }
}
