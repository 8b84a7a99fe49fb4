package org.apache.kafka.common.test.junit;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.ReplicaManager;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.requests.MetadataRequest;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata;
import org.apache.kafka.server.IntegrationTestUtils;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.test.TestUtils;

import org.mockito.Mockito;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A stand-in for the logs of a broker: their offsets and producers, what is in its data directory (segments and checkpoints), and
 * the compaction of the offsets topic, which the topic's configuration and a commit of a group of its own bring about.
 */
final class WireLogs {
    private static final String GROUP = "wire-logs";
    private static final String CLEANED = "cleaner-offset-checkpoint";
    private static final String HIGH_WATERMARKS = "replication-offset-checkpoint";
    private static final Map<String, String> COMPACTED_SOON = Map.of(
        TopicConfig.SEGMENT_MS_CONFIG, "1", TopicConfig.MIN_CLEANABLE_DIRTY_RATIO_CONFIG, "0.0");

    private WireLogs() {
    }

    static ReplicaManager replicas(WireCluster cluster, WireBrokers brokers, int id) {
        LogManager logs = manager(cluster, brokers, id);
        return Mockito.mock(ReplicaManager.class, WireObjects.only(Map.of(
            "logManager", call -> logs,
            "onlinePartition", call -> partition(cluster, brokers, id, call.getArgument(0)),
            "localLog", call -> Option.apply(log(cluster, brokers, id, call.getArgument(0))))));
    }

    /** If this broker is up and says that it has a replica; its log is there for the leader only. */
    private static Option<Partition> partition(WireCluster cluster, WireBrokers brokers, int id, TopicPartition partition) throws IOException {
        Optional<PartitionMetadata> known = brokers.isDown(id) ? Optional.empty() : metadata(brokers.ports().get(id), partition);
        if (known.isEmpty() || !known.get().replicaIds.contains(id)) {
            return Option.empty();
        }
        int leader = known.get().leaderId.orElse(-1);
        return Option.apply(Mockito.mock(Partition.class, WireObjects.only(Map.of(
            "getLeaderEpoch", call -> known.get().leaderEpoch.orElse(-1),
            "leaderReplicaIdOpt", call -> leader < 0 ? Option.empty() : Option.apply(leader),
            "leaderIdIfLocal", call -> leader == id ? Option.apply(leader) : Option.empty(),
            "leaderLogIfLocal", call -> Option.apply(leader == id ? log(cluster, brokers, id, partition) : null)))));
    }

    private static Optional<PartitionMetadata> metadata(int port, TopicPartition partition) throws IOException {
        MetadataRequest request = new MetadataRequest.Builder(List.of(partition.topic()), false).build(ApiKeys.METADATA.latestVersion());
        MetadataResponse response = IntegrationTestUtils.connectAndReceive(request, port);
        return response.topicMetadata().stream().flatMap(topic -> topic.partitionMetadata().stream())
            .filter(one -> one.topicPartition.equals(partition)).findFirst();
    }

    static LogManager manager(WireCluster cluster, WireBrokers brokers, int id) {
        LogCleaner cleaner = Mockito.mock(LogCleaner.class, WireObjects.only(Map.of(
            "awaitCleaned", call -> awaitCleaned(cluster, brokers, id, call.getArgument(0), call.getArgument(1), call.getArgument(2)))));
        return Mockito.mock(LogManager.class, WireObjects.only(Map.of(
            "cleaner", call -> cleaner,
            "liveLogDirs", call -> CollectionConverters.asScala(brokers.data(id)).toSeq(),
            "getLog$default$2", call -> false,
            "getLog", call -> directory(brokers, id, call.getArgument(0)).isEmpty() ? Option.empty()
                : Option.apply(log(cluster, brokers, id, call.getArgument(0))))));
    }

    /** It rolls when it is compacted. */
    private static UnifiedLog log(WireCluster cluster, WireBrokers brokers, int id, TopicPartition partition) {
        return Mockito.mock(UnifiedLog.class, WireObjects.only(Map.of(
            "logStartOffset", call -> offset(cluster, partition, OffsetSpec.earliest()),
            "logEndOffset", call -> offset(cluster, partition, OffsetSpec.latest()),
            "producerStateManager", call -> producers(cluster, partition),
            "highWatermark", call -> checkpoint(brokers, id, HIGH_WATERMARKS, partition),
            "logSegments", call -> segments(directory(brokers, id, partition).orElseThrow()),
            "dir", call -> directory(brokers, id, partition).orElseThrow(),
            "roll", call -> null)));
    }

    /** The offset in a checkpoint of the broker, or -1. */
    private static long checkpoint(WireBrokers brokers, int id, String name, TopicPartition partition) throws IOException {
        Optional<File> file = directory(brokers, id, partition).map(log -> new File(log.getParentFile(), name)).filter(File::exists);
        return file.isPresent() ? new OffsetCheckpointFile(file.get(), null).read().getOrDefault(partition, -1L) : -1L;
    }

    /** Of the log of a partition, which a broker has in one of its data directories, or not at all. */
    private static Optional<File> directory(WireBrokers brokers, int id, TopicPartition partition) {
        return brokers.data(id).stream().map(one -> new File(one, partition.toString())).filter(File::exists).findFirst();
    }

    private static List<LogSegment> segments(File directory) throws IOException {
        File[] files = directory.listFiles((parent, name) -> name.endsWith(LogFileUtils.LOG_FILE_SUFFIX));
        List<LogSegment> found = new ArrayList<>();
        for (File file : files == null ? new File[0] : files) {
            FileRecords records = FileRecords.open(file, false);
            found.add(Mockito.mock(LogSegment.class, WireObjects.only(Map.of("log", call -> records))));
        }
        return found;
    }

    private static long offset(WireCluster cluster, TopicPartition partition, OffsetSpec which) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            return admin.listOffsets(Map.of(partition, which)).partitionResult(partition).get().offset();
        }
    }

    /** As the leader has them. */
    private static ProducerStateManager producers(WireCluster cluster, TopicPartition partition) {
        return Mockito.mock(ProducerStateManager.class, WireObjects.only(Map.of("activeProducers", call -> {
            Map<Long, ProducerStateEntry> found = new TreeMap<>();
            try (Admin admin = cluster.internalAdmin(Map.of())) {
                for (ProducerState one : admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers()) {
                    found.put(one.producerId(), new ProducerStateEntry(one.producerId(), (short) one.producerEpoch(),
                        one.coordinatorEpoch().orElse(-1), one.lastTimestamp(), one.currentTransactionStartOffset()));
                }
            }
            return found;
        })));
    }

    private static boolean awaitCleaned(
        WireCluster cluster, WireBrokers brokers, int id, TopicPartition partition, long offset, long withinMs
    ) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            configure(admin, partition.topic(), AlterConfigOp.OpType.SET);
            admin.alterConsumerGroupOffsets(GROUP, Map.of(partition, new OffsetAndMetadata(0))).all().get();
            TestUtils.waitForCondition(() -> checkpoint(brokers, id, CLEANED, partition) >= offset, withinMs,
                partition + " is not clean up to " + offset);
            configure(admin, partition.topic(), AlterConfigOp.OpType.DELETE);
        }
        return true;
    }

    private static void configure(Admin admin, String topic, AlterConfigOp.OpType way) throws Exception {
        List<AlterConfigOp> changes = COMPACTED_SOON.entrySet().stream()
            .map(entry -> new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue()), way)).toList();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), changes)).all().get();
    }
}
