package org.apache.kafka.common.test.junit;

import kafka.log.LogManager;
import kafka.server.ReplicaManager;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.test.TestUtils;

import org.mockito.Mockito;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import scala.Option;

/**
 * A stand-in for the logs of a broker: their end offsets, what is in its data directory (segments and checkpoints), and
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
            "localLog", call -> Option.apply(log(cluster, brokers, id, call.getArgument(0))))));
    }

    static LogManager manager(WireCluster cluster, WireBrokers brokers, int id) {
        LogCleaner cleaner = Mockito.mock(LogCleaner.class, WireObjects.only(Map.of(
            "awaitCleaned", call -> awaitCleaned(cluster, brokers, id, call.getArgument(0), call.getArgument(1), call.getArgument(2)))));
        return Mockito.mock(LogManager.class, WireObjects.only(Map.of(
            "cleaner", call -> cleaner,
            "getLog$default$2", call -> false,
            "getLog", call -> Option.apply(log(cluster, brokers, id, call.getArgument(0))))));
    }

    /** It rolls when it is compacted. */
    private static UnifiedLog log(WireCluster cluster, WireBrokers brokers, int id, TopicPartition partition) {
        return Mockito.mock(UnifiedLog.class, WireObjects.only(Map.of(
            "logEndOffset", call -> logEndOffset(cluster, partition),
            "highWatermark", call -> checkpoint(brokers, id, HIGH_WATERMARKS, partition),
            "logSegments", call -> segments(new File(brokers.data(id), partition.toString())),
            "roll", call -> null)));
    }

    /** The offset in a checkpoint of the broker, or -1. */
    private static long checkpoint(WireBrokers brokers, int id, String name, TopicPartition partition) throws IOException {
        File file = new File(brokers.data(id), name);
        return file.exists() ? new OffsetCheckpointFile(file, null).read().getOrDefault(partition, -1L) : -1L;
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

    private static long logEndOffset(WireCluster cluster, TopicPartition partition) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
        }
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
