package org.apache.kafka.common.test.junit;

import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.network.SocketServer;

import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

import java.util.AbstractMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Stand-ins for a broker and a controller: what they know by the wire or by the test's own properties (ports, topics and
 * their leaders, configuration, topic ids), and a NeedsBrokerObjects for all else.
 */
final class WireObjects {
    static final int CONTROLLER_ID = 3000;

    private WireObjects() {
    }

    /** What is known by the name of its method; a NeedsBrokerObjects for all else. */
    static Answer<Object> only(Map<String, Answer<?>> known) {
        return call -> {
            Answer<?> stub = known.get(call.getMethod().getName());
            if (stub != null) {
                return stub.answer(call);
            }
            if (call.getMethod().getDeclaringClass() == Object.class) {
                return Mockito.RETURNS_DEFAULTS.answer(call);
            }
            throw new NeedsBrokerObjects(call.getMethod().getDeclaringClass().getSimpleName() + "." + call.getMethod().getName());
        };
    }

    static KafkaBroker broker(WireInstance cluster, WireBrokers brokers, int id, Map<String, String> properties) {
        int port = brokers.ports().get(id);
        KafkaConfig config = config(cluster, id, port, properties);
        SocketServer sockets = Mockito.mock(SocketServer.class, only(Map.of("boundPort", call -> port)));
        KRaftMetadataCache cache = Mockito.mock(KRaftMetadataCache.class, only(Map.of(
            "numPartitions", call -> Optional.of(leaders(cluster, port, call.getArgument(0)).size()).filter(n -> n > 0),
            "contains", call -> call.getArgument(0) instanceof String topic
                && !leaders(cluster, port, topic).isEmpty(),
            "getLeaderAndIsr", call -> Optional.ofNullable(
                leaders(cluster, port, call.getArgument(0)).get((int) call.getArgument(1))))));
        GroupCoordinator groups = Mockito.mock(GroupCoordinator.class, only(Map.of(
            "groupMetadataTopicConfigs", call -> offsetsTopic(config))));
        Map<String, Answer<?>> known = new HashMap<>();
        known.put("config", call -> config);
        known.put("socketServer", call -> sockets);
        known.put("boundPort", call -> port);
        known.put("metadataCache", call -> cache);
        known.put("groupCoordinator", call -> groups);
        known.put("logManager", call -> WireLogs.manager(cluster, brokers, id));
        known.put("isShutdown", call -> brokers.isDown(id));
        known.put("clusterId", call -> cluster.clusterId());
        known.put("shutdown", call -> {
            brokers.stopOne(id);
            return null;
        });
        known.put("startup", call -> {
            brokers.startOne(id);
            return null;
        });
        known.put("awaitShutdown", call -> null);
        return Mockito.mock(BrokerServer.class, only(known));
    }

    private static KafkaConfig config(WireInstance cluster, int id, int port, Map<String, String> properties) {
        Map<String, Object> all = new HashMap<>(properties);
        String name = cluster.clientListener().value();
        all.put("process.roles", "broker");
        all.put("node.id", String.valueOf(id));
        all.put("controller.quorum.voters", CONTROLLER_ID + "@localhost:1");
        all.put("controller.listener.names", "CONTROLLER");
        all.put("listeners", name + "://localhost:" + port);
        all.put("listener.security.protocol.map", properties.get("listener.security.protocol.map") + ",CONTROLLER:PLAINTEXT");
        all.keySet().removeIf(key -> key.equals("authorizer.class.name"));
        return new KafkaConfig(all, false);
    }

    private static Properties offsetsTopic(KafkaConfig config) {
        Properties found = new Properties();
        found.put("cleanup.policy", "compact");
        found.put("segment.bytes", String.valueOf(config.getInt("offsets.topic.segment.bytes")));
        found.put("compression.type", "producer");
        return found;
    }

    /** A map that has no entries to go through, so that nobody waits for a metadata log, and one controller to get. */
    static Map<Integer, ControllerServer> controllers(WireInstance cluster) {
        return new AbstractMap<>() {
            @Override
            public Set<Entry<Integer, ControllerServer>> entrySet() {
                return Set.of();
            }

            @Override
            public ControllerServer get(Object id) {
                Controller controller = Mockito.mock(Controller.class, only(Map.of(
                    "findAllTopicIds", call -> CompletableFuture.completedFuture(topicIds(cluster)))));
                return Mockito.mock(ControllerServer.class, only(Map.of("controller", call -> controller)));
            }
        };
    }

    private static Map<String, Uuid> topicIds(WireInstance cluster) throws Exception {
        Map<String, Uuid> found = new TreeMap<>();
        try (Admin admin = cluster.admin()) {
            for (TopicListing topic : admin.listTopics().listings().get()) {
                found.put(topic.name(), topic.topicId());
            }
        }
        return found;
    }

    /** Of each partition that has a leader, as this broker says; empty for a topic that it does not know. */
    static Map<Integer, LeaderAndIsr> leaders(WireInstance cluster, int port, String topic) throws Exception {
        Map<Integer, LeaderAndIsr> found = new TreeMap<>();
        try (Admin admin = cluster.admin(Map.of("bootstrap.servers", "localhost:" + port))) {
            TopicDescription described = admin.describeTopics(List.of(topic)).topicNameValues().get(topic).get();
            described.partitions().stream().filter(one -> one.leader() != null && !one.leader().isEmpty()).forEach(one ->
                found.put(one.partition(), new LeaderAndIsr(one.leader().id(), 0,
                    one.isr().stream().map(node -> node.id()).toList(), LeaderRecoveryState.RECOVERED, 0)));
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof UnknownTopicOrPartitionException)) {
                throw error;
            }
        }
        return found;
    }
}
