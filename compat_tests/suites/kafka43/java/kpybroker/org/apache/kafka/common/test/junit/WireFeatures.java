package org.apache.kafka.common.test.junit;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.test.TestUtils;

import java.util.Map;

/** The level of group.version that all live brokers of a cluster know. */
final class WireFeatures {
    private static final long DEADLINE_MS = 60000;
    private static final String GROUP_VERSION = "group.version";
    private final WireCluster cluster;
    private final WireBrokers brokers;

    WireFeatures(WireCluster cluster, WireBrokers brokers) {
        this.cluster = cluster;
        this.brokers = brokers;
    }

    void finalizeGroupVersion(short level) throws Exception {
        if (groupVersion() == level) {
            return;
        }
        FeatureUpdate.UpgradeType way = level == 0
            ? FeatureUpdate.UpgradeType.SAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE;
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            FeatureUpdate update = new FeatureUpdate(level, way);
            admin.updateFeatures(Map.of(GROUP_VERSION, update), new UpdateFeaturesOptions()).all().get();
        }
        TestUtils.waitForCondition(() -> groupVersion() == level, DEADLINE_MS, "group.version is not " + level);
    }

    /** -1 while brokers differ. */
    short groupVersion() throws Exception {
        Short found = null;
        for (int id : brokers.ports().keySet()) {
            if (brokers.isDown(id)) {
                continue;
            }
            try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + brokers.ports().get(id)))) {
                var finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
                short level = finalized.containsKey(GROUP_VERSION) ? finalized.get(GROUP_VERSION).maxVersionLevel() : 0;
                if (found != null && found != level) {
                    return -1;
                }
                found = level;
            }
        }
        return found == null ? -1 : found;
    }
}
