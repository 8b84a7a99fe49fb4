import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Kafka's own share coordinator, of one partition of its topic: one command a line in, one line out.
 *
 *     new UPDATES COLD_MS                            a fresh one, whose topics have three partitions each
 *     time MS                                        sets its clock
 *     init GROUP TOPIC PARTITION EPOCH START
 *     read GROUP TOPIC PARTITION LEADER              summary: the same
 *     write GROUP TOPIC PARTITION EPOCH LEADER START COUNT BATCHES
 *     delete GROUP TOPIC PARTITION
 *     cold                                           gone TOPIC
 *
 * TOPIC is a number; topics from 10 on do not exist. BATCHES is first-last:state:count,... or -. Each line out has the
 * response, the records in hex as key=value, and up to which offset the log is redundant.
 */
public class ShareStates {
    private static final HexFormat HEX = HexFormat.of();
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private ShareCoordinatorShard shard;
    private long now;
    private long offset;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        ShareStates states = new ShareStates();
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(states.perform(line.split(" ")));
        out.flush();
    }

    private String perform(String[] words) {
        switch (words[0]) {
            case "new":
                shard = newShard(words[1], words[2]);
                offset = 0;
                return "ok";
            case "time":
                now = Long.parseLong(words[1]);
                return "ok";
            case "cold":
                return done("cold", shard.snapshotColdPartitions());
            case "gone":
                return done("gone", shard.maybeCleanupShareState(Set.of(topic(words[1]))));
            default:
                return asked(words[0], words[1], topic(words[2]), Integer.parseInt(words[3]), words);
        }
    }

    private String asked(String command, String group, Uuid topic, int partition, String[] words) {
        switch (command) {
            case "init": {
                var result = shard.initializeState(new InitializeShareGroupStateRequestData().setGroupId(group).setTopics(
                    List.of(new InitializeShareGroupStateRequestData.InitializeStateData().setTopicId(topic).setPartitions(
                        List.of(new InitializeShareGroupStateRequestData.PartitionData().setPartition(partition)
                            .setStateEpoch(Integer.parseInt(words[4])).setStartOffset(Long.parseLong(words[5])))))));
                var one = result.response().results().get(0).partitions().get(0);
                return done(one.errorCode() + ";" + one.errorMessage(), result);
            }
            case "read": {
                var result = shard.readStateAndMaybeUpdateLeaderEpoch(
                    new ReadShareGroupStateRequestData().setGroupId(group).setTopics(
                        List.of(new ReadShareGroupStateRequestData.ReadStateData().setTopicId(topic).setPartitions(
                            List.of(new ReadShareGroupStateRequestData.PartitionData().setPartition(partition)
                                .setLeaderEpoch(Integer.parseInt(words[4])))))));
                var one = result.response().results().get(0).partitions().get(0);
                String batches = one.stateBatches().stream().map(batch -> batch.firstOffset() + "-" + batch.lastOffset()
                    + ":" + batch.deliveryState() + ":" + batch.deliveryCount()).collect(Collectors.joining(","));
                return done(one.errorCode() + ";" + one.errorMessage() + ";" + one.stateEpoch() + ";"
                    + one.startOffset() + ";" + batches, result);
            }
            case "summary": {
                var result = shard.readStateSummary(new ReadShareGroupStateSummaryRequestData().setGroupId(group).setTopics(
                    List.of(new ReadShareGroupStateSummaryRequestData.ReadStateSummaryData().setTopicId(topic).setPartitions(
                        List.of(new ReadShareGroupStateSummaryRequestData.PartitionData().setPartition(partition)
                            .setLeaderEpoch(Integer.parseInt(words[4])))))));
                var one = result.response().results().get(0).partitions().get(0);
                return done(one.errorCode() + ";" + one.errorMessage() + ";" + one.stateEpoch() + ";" + one.leaderEpoch()
                    + ";" + one.startOffset() + ";" + one.deliveryCompleteCount(), result);
            }
            case "write": {
                var result = shard.writeState(new WriteShareGroupStateRequestData().setGroupId(group).setTopics(
                    List.of(new WriteShareGroupStateRequestData.WriteStateData().setTopicId(topic).setPartitions(
                        List.of(new WriteShareGroupStateRequestData.PartitionData().setPartition(partition)
                            .setStateEpoch(Integer.parseInt(words[4])).setLeaderEpoch(Integer.parseInt(words[5]))
                            .setStartOffset(Long.parseLong(words[6])).setDeliveryCompleteCount(Integer.parseInt(words[7]))
                            .setStateBatches(batches(words[8])))))));
                var one = result.response().results().get(0).partitions().get(0);
                return done(one.errorCode() + ";" + one.errorMessage(), result);
            }
            default: {
                var result = shard.deleteState(new DeleteShareGroupStateRequestData().setGroupId(group).setTopics(
                    List.of(new DeleteShareGroupStateRequestData.DeleteStateData().setTopicId(topic).setPartitions(
                        List.of(new DeleteShareGroupStateRequestData.PartitionData().setPartition(partition))))));
                var one = result.response().results().get(0).partitions().get(0);
                return done(one.errorCode() + ";" + one.errorMessage(), result);
            }
        }
    }

    private static List<WriteShareGroupStateRequestData.StateBatch> batches(String text) {
        List<WriteShareGroupStateRequestData.StateBatch> found = new ArrayList<>();
        for (String batch : text.equals("-") ? new String[0] : text.split(",")) {
            String[] parts = batch.split("[-:]");
            found.add(new WriteShareGroupStateRequestData.StateBatch().setFirstOffset(Long.parseLong(parts[0]))
                .setLastOffset(Long.parseLong(parts[1])).setDeliveryState(Byte.parseByte(parts[2]))
                .setDeliveryCount(Short.parseShort(parts[3])));
        }
        return found;
    }

    /** The records become its state, as the runtime does it. */
    private String done(String response, CoordinatorResult<?, CoordinatorRecord> result) {
        List<String> records = new ArrayList<>();
        for (CoordinatorRecord record : result.records()) {
            byte[] value = serde.serializeValue(record);
            records.add(HEX.formatHex(serde.serializeKey(record)) + "=" + (value == null ? "" : HEX.formatHex(value)));
            shard.replay(offset++, -1L, (short) -1, record);
        }
        Optional<Long> redundant = shard.lastRedundantOffset().response();
        return response + " | " + String.join(" ", records) + " | " + redundant.map(String::valueOf).orElse("-");
    }

    private ShareCoordinatorShard newShard(String updates, String coldMs) {
        ShareCoordinatorConfig config = new ShareCoordinatorConfig(new AbstractConfig(
            ShareCoordinatorConfig.CONFIG_DEF,
            Map.of(
                ShareCoordinatorConfig.SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT_CONFIG, updates,
                ShareCoordinatorConfig.COLD_PARTITION_SNAPSHOT_INTERVAL_MS_CONFIG, coldMs),
            false));
        LogContext context = new LogContext();
        ShareCoordinatorShard.Builder builder = new ShareCoordinatorShard.Builder(config);
        builder.withSnapshotRegistry(new SnapshotRegistry(context));
        builder.withLogContext(context);
        builder.withTime((Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, arguments) -> method.getName().equals("milliseconds") ? now : null));
        builder.withCoordinatorMetrics(new ShareCoordinatorMetrics(new Metrics()));
        builder.withTopicPartition(new TopicPartition("__share_group_state", 0));
        ShareCoordinatorShard built = builder.build();
        built.onMetadataUpdate(null, image());
        return built;
    }

    private static CoordinatorMetadataImage image() {
        Class<?> type = CoordinatorMetadataImage.TopicMetadata.class;
        Object topic = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> method.getName().equals("partitionCount") ? 3 : null);
        return (CoordinatorMetadataImage) Proxy.newProxyInstance(type.getClassLoader(),
            new Class<?>[] {CoordinatorMetadataImage.class}, (proxy, method, arguments) ->
                method.getName().equals("topicMetadata") && ((Uuid) arguments[0]).getLeastSignificantBits() < 10
                    ? Optional.of(topic) : Optional.empty());
    }

    private static Uuid topic(String number) {
        return new Uuid(1L, Long.parseLong(number));
    }
}
