package org.apache.kafka.common.test.junit;

import kafka.log.LogManager;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.test.TestUtils;

import org.mockito.Mockito;

import java.util.List;
import java.util.Map;

import scala.Option;

/**
 * A stand-in for the logs of a broker: their end offsets, and the compaction of the offsets topic, which the topic's
 * configuration and a commit of a group of its own bring about. What is clean stands in the cleaner's checkpoint.
 */
final class WireLogs {
    private static final String GROUP = "wire-logs";
    private static final Map<String, String> COMPACTED_SOON = Map.of(
        TopicConfig.SEGMENT_MS_CONFIG, "1", TopicConfig.MIN_CLEANABLE_DIRTY_RATIO_CONFIG, "0.0");

    private WireLogs() {
    }

    static LogManager manager(WireCluster cluster, WireBrokers brokers, int id) {
        LogCleaner cleaner = Mockito.mock(LogCleaner.class, WireObjects.only(Map.of(
            "awaitCleaned", call -> awaitCleaned(cluster, brokers, id, call.getArgument(0), call.getArgument(1), call.getArgument(2)))));
        return Mockito.mock(LogManager.class, WireObjects.only(Map.of(
            "cleaner", call -> cleaner,
            "getLog$default$2", call -> false,
            "getLog", call -> Option.apply(log(cluster, call.getArgument(0))))));
    }

    /** It rolls when it is compacted. */
    private static UnifiedLog log(WireCluster cluster, TopicPartition partition) {
        return Mockito.mock(UnifiedLog.class, WireObjects.only(Map.of(
            "logEndOffset", call -> logEndOffset(cluster, partition),
            "roll", call -> null)));
    }

    private static long logEndOffset(WireCluster cluster, TopicPartition partition) throws Exception {
        try (Admin admin = cluster.admin(Map.of())) {
            return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
        }
    }

    private static boolean awaitCleaned(
        WireCluster cluster, WireBrokers brokers, int id, TopicPartition partition, long offset, long withinMs
    ) throws Exception {
        try (Admin admin = cluster.admin(Map.of())) {
            configure(admin, partition.topic(), AlterConfigOp.OpType.SET);
            admin.alterConsumerGroupOffsets(GROUP, Map.of(partition, new OffsetAndMetadata(0))).all().get();
            TestUtils.waitForCondition(() -> brokers.cleanedUpTo(id, partition) >= offset, withinMs,
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
