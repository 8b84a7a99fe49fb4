package org.apache.kafka.common.test.junit;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.test.TestUtils;

import java.util.Map;

/** The levels of features that all live brokers of a cluster know. */
final class WireFeatures {
    private static final long DEADLINE_MS = 60000;
    static final String GROUP_VERSION = "group.version";
    static final String TRANSACTION_VERSION = "transaction.version";
    static final String SHARE_VERSION = "share.version";
    static final String STREAMS_VERSION = "streams.version";
    private final WireCluster cluster;
    private final WireBrokers brokers;

    WireFeatures(WireCluster cluster, WireBrokers brokers) {
        this.cluster = cluster;
        this.brokers = brokers;
    }

    void finalizeLevel(String feature, short level) throws Exception {
        if (levelOf(feature) == level) {
            return;
        }
        FeatureUpdate.UpgradeType way = level < levelOf(feature)
            ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE;
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            FeatureUpdate update = new FeatureUpdate(level, way);
            admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions()).all().get();
        }
        TestUtils.waitForCondition(() -> levelOf(feature) == level, DEADLINE_MS, feature + " is not " + level);
    }

    /** -1 while brokers differ. */
    short levelOf(String feature) throws Exception {
        Short found = null;
        for (int id : brokers.ports().keySet()) {
            if (brokers.isDown(id)) {
                continue;
            }
            try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + brokers.ports().get(id)))) {
                var finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
                short level = finalized.containsKey(feature) ? finalized.get(feature).maxVersionLevel() : 0;
                if (found != null && found != level) {
                    return -1;
                }
                found = level;
            }
        }
        return found == null ? -1 : found;
    }
}
