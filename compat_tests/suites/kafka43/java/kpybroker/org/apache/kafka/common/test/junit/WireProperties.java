package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.security.auth.SecurityProtocol;

import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a broker of ours takes of the properties that a test gives to Kafka's. */
final class WireProperties {
    static final String AUTHORIZER = "authorizer.class.name";
    static final String ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer";
    private static final Set<String> JAVA_PLUGINS = Set.of("principal.builder.class", "create.topic.policy.class.name",
        "alter.config.policy.class.name", "metric.reporters", "client.quota.callback.class");
    private static final Set<String> ASSIGNORS = Set.of("uniform", "range");
    private static final Set<String> OF_KRAFT = Set.of("process.roles", "node.id", "controller.listener.names",
        "controller.quorum.voters", "metadata.log.dir", "unstable.api.versions.enable", "unstable.feature.versions.enable",
        "server.max.startup.time.ms");
    private static final Set<String> OURS = Set.of("broker.id", "log.dir", "log.dirs", "listeners", "advertised.listeners",
        "security.inter.broker.protocol");

    private WireProperties() {
    }

    /** One listener; where it is, and where the data are, is said by who makes the broker. */
    static void adapt(Map<String, String> all, String listener, SecurityProtocol protocol) {
        JAVA_PLUGINS.stream().filter(all::containsKey).findFirst().ifPresent(key -> {
            throw new NeedsBrokerObjects(key + ", a Java class in the broker");
        });
        String assignors = all.get("group.consumer.assignors");
        if (assignors != null && !ASSIGNORS.containsAll(List.of(assignors.split(",")))) {
            throw new NeedsBrokerObjects("group.consumer.assignors, a Java class in the broker");
        }
        all.keySet().removeAll(OF_KRAFT);
        all.keySet().removeAll(OURS);
        all.computeIfPresent(AUTHORIZER, (key, asked) -> ACL_AUTHORIZER); // the other one is KRaft's
        all.put("listener.security.protocol.map", listener + ":" + protocol.name);
        all.put("inter.broker.listener.name", listener);
    }
}
