package org.apache.kafka.common.test.junit;

import org.apache.kafka.clients.admin.Admin;

import java.util.Map;

/** A cluster of kpybrokers, as stand-ins of its brokers need it. */
interface WireCluster {
    /** Of the listener between brokers: all of them, unless `configs` has bootstrap.servers. */
    Admin internalAdmin(Map<String, Object> configs);

    default String idOfCluster() {
        try (Admin admin = internalAdmin(Map.of())) {
            return admin.describeCluster().clusterId().get();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
