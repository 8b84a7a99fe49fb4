package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.security.auth.SecurityProtocol;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What a broker of ours takes of the properties that a test gives to Kafka's. */
final class WireProperties {
    static final String AUTHORIZER = "authorizer.class.name";
    private static final String SHUTDOWN_BACKOFF = "controlled.shutdown.retry.backoff.ms";
    private static final String RELEASE = "kpybroker.kafka.version";
    static final String ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer";
    static final String PRINCIPAL_BUILDER = "principal.builder.class";
    /** What those classes do that give a principal by the listener: the one between brokers is first. */
    private static final Map<String, String> PRINCIPALS = Map.of(
        "kafka.api.AbstractAuthorizerIntegrationTest$PrincipalBuilder", "BROKER=User:broker,CLIENT=User:client",
        "org.apache.kafka.clients.security.GroupAuthorizerIntegrationTest$GroupPrincipalBuilder",
        "BROKER=Group:broker,EXTERNAL=Group:client");
    private static final Set<String> JAVA_PLUGINS = Set.of(PRINCIPAL_BUILDER, "create.topic.policy.class.name",
        "alter.config.policy.class.name", "metric.reporters", "client.quota.callback.class",
        "remote.log.storage.manager.class.name");
    private static final Map<String, Set<String>> ASSIGNORS = Map.of(
        "group.consumer.assignors", Set.of("uniform", "range"), "group.share.assignors", Set.of("simple"));
    private static final Set<String> OF_KRAFT = Set.of("process.roles", "node.id", "controller.listener.names",
        "controller.quorum.voters", "metadata.log.dir", "unstable.api.versions.enable", "unstable.feature.versions.enable",
        "server.max.startup.time.ms");
    private static final Set<String> OURS = Set.of("broker.id", "log.dir", "log.dirs", "listeners", "advertised.listeners",
        "security.inter.broker.protocol");

    private WireProperties() {
    }

    /** One listener, unless each has a principal; where it is, and where the data are, is said by who makes the broker. */
    static void adapt(Map<String, String> all, String listener, SecurityProtocol protocol) {
        String principals = PRINCIPALS.get(all.getOrDefault(PRINCIPAL_BUILDER, ""));
        if (principals != null) {
            all.remove(PRINCIPAL_BUILDER);
            all.put("principals", principals);
        }
        List<String> listeners = principals == null ? List.of(listener)
            : Stream.of(principals.split(",")).map(one -> one.split("=")[0]).toList();
        JAVA_PLUGINS.stream().filter(all::containsKey).findFirst().ifPresent(key -> {
            throw new NeedsBrokerObjects(key + ", a Java class in the broker");
        });
        ASSIGNORS.forEach((key, served) -> {
            if (all.containsKey(key) && !served.containsAll(List.of(all.get(key).split(",")))) {
                throw new NeedsBrokerObjects(key + ", a Java class in the broker");
            }
        });
        all.keySet().removeAll(OF_KRAFT);
        all.keySet().removeAll(OURS);
        String release = System.getProperty(RELEASE, "");
        if (!release.isEmpty()) {
            all.put(RELEASE, release);
        }
        all.putIfAbsent(SHUTDOWN_BACKOFF, "100"); // KRaft has no such tries: the last broker stops at once
        all.computeIfPresent(AUTHORIZER, (key, asked) -> ACL_AUTHORIZER); // the other one is KRaft's
        all.put("listener.security.protocol.map",
            listeners.stream().map(one -> one + ":" + protocol.name).collect(Collectors.joining(",")));
        all.put("listener.names", String.join(",", listeners));
        all.put("inter.broker.listener.name", listeners.get(0));
    }
}
