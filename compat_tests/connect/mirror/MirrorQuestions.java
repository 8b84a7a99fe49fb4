import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * What MirrorMaker 2's client library says of one cluster, a line for each response.
 *
 * Arguments: bootstrap servers, alias of the other cluster, group.
 */
public class MirrorQuestions {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String alias = arguments[1];
        String group = arguments[2];
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (MirrorClient client = new MirrorClient(settings)) {
            say("upstream", client.upstreamClusters());
            say("heartbeat-topics", client.heartbeatTopics());
            say("checkpoint-topics", client.checkpointTopics());
            say("remote-topics", client.remoteTopics(alias));
            System.out.println("hops " + client.replicationHops(alias));
        }
        Map<TopicPartition, OffsetAndMetadata> translated =
            RemoteClusterUtils.translateOffsets(settings, alias, group, PATIENCE);
        Map<String, Long> sorted = new TreeMap<>();
        translated.forEach((partition, position) -> sorted.put(partition.toString(), position.offset()));
        sorted.forEach((partition, offset) -> System.out.println("translated " + partition + " " + offset));
        Heartbeat heartbeat = Heartbeat.deserializeRecord(first(bootstrap, alias + ".heartbeats"));
        System.out.println("heartbeat " + heartbeat.sourceClusterAlias() + " " + heartbeat.targetClusterAlias());
        Checkpoint checkpoint = Checkpoint.deserializeRecord(first(bootstrap, alias + ".checkpoints.internal"));
        System.out.println("checkpoint " + checkpoint.consumerGroupId());
    }

    private static void say(String question, Iterable<String> names) {
        TreeSet<String> sorted = new TreeSet<>();
        names.forEach(sorted::add);
        System.out.println(question + " " + String.join(",", sorted));
    }

    /** The first record of partition 0. */
    private static ConsumerRecord<byte[], byte[]> first(String bootstrap, String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", "read_committed");
        TopicPartition partition = new TopicPartition(topic, 0);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = System.nanoTime() + PATIENCE.toNanos();
            while (System.nanoTime() < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    return record;
                }
            }
        }
        throw new IllegalStateException(topic + " has no record");
    }
}
