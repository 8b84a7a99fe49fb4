package org.apache.kafka.common.test.junit;

import kafka.network.SocketServer;
import kafka.raft.KafkaRaftManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;

import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

import java.io.File;
import java.util.AbstractMap;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import scala.Option;

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

    /** What starts a broker, for the first time or again. */
    interface Start {
        void run() throws Exception;
    }

    static KafkaBroker broker(WireCluster cluster, WireBrokers brokers, KafkaConfig config, Start start) {
        int id = config.brokerId();
        SocketServer sockets = Mockito.mock(SocketServer.class, only(Map.of("boundPort", call -> brokers.port(id, call.getArgument(0)))));
        KRaftMetadataCache cache = metadataCache(cluster, () -> brokers.isDown(id) ? stopped() : brokers.ports().get(id));
        KafkaApis apis = Mockito.mock(KafkaApis.class, only(Map.of(
            "clusterId", call -> cluster.idOfCluster(), "metadataCache", call -> cache)));
        GroupCoordinator groups = Mockito.mock(GroupCoordinator.class, only(Map.of(
            "groupMetadataTopicConfigs", call -> offsetsTopic(config))));
        SharedServer shared = Mockito.mock(SharedServer.class, only(Map.of(
            "loader", call -> null))); // so that nothing waits for a metadata log
        Map<String, Answer<?>> known = new HashMap<>();
        known.put("config", call -> config);
        known.put("sharedServer", call -> shared);
        known.put("socketServer", call -> sockets);
        known.put("boundPort", call -> brokers.port(id, call.getArgument(0)));
        known.put("authorizerPlugin", call -> Option.apply(WireAcls.plugin(cluster)));
        known.put("metadataCache", call -> cache);
        known.put("dataPlaneRequestProcessor", call -> apis);
        known.put("groupCoordinator", call -> groups);
        known.put("logManager", call -> WireLogs.manager(cluster, brokers, id));
        known.put("replicaManager", call -> WireLogs.replicas(cluster, brokers, id));
        known.put("isShutdown", call -> brokers.isDown(id));
        known.put("brokerState", call -> brokers.isDown(id) ? BrokerState.SHUTTING_DOWN : BrokerState.RUNNING);
        known.put("clusterId", call -> cluster.idOfCluster());
        known.put("shutdown", call -> {
            brokers.stopOne(id);
            return null;
        });
        known.put("startup", call -> {
            start.run();
            return null;
        });
        known.put("awaitShutdown", call -> null);
        return Mockito.mock(BrokerServer.class, only(known));
    }

    /** What a broker knew when it stopped is in its memory only; one that is asked on the wire does not respond. */
    private static int stopped() {
        throw new NeedsBrokerObjects("the metadata of a broker that has stopped");
    }

    private static KRaftMetadataCache metadataCache(WireCluster cluster, Supplier<Integer> port) {
        return Mockito.mock(KRaftMetadataCache.class, only(Map.of(
            "numPartitions", call -> Optional.of(partitions(cluster, port.get(), call.getArgument(0)).size()).filter(n -> n > 0),
            "contains", call -> call.getArgument(0) instanceof String topic
                && !partitions(cluster, port.get(), topic).isEmpty(),
            "hasAliveBroker", call -> alive(cluster, port.get()).stream().anyMatch(node -> node.id() == (int) call.getArgument(0)),
            "getAliveBrokerNodes", call -> alive(cluster, port.get()),
            "getPartitionReplicaEndpoints", call -> replicas(cluster, port.get(), call.getArgument(0)),
            "getPartitionLeaderEndpoint", call -> leader(cluster, port.get(), call.getArgument(0), call.getArgument(1)),
            "topicConfig", call -> topicConfig(cluster, call.getArgument(0)),
            "getTopicId", call -> topicIds(cluster).getOrDefault((String) call.getArgument(0), Uuid.ZERO_UUID),
            "getLeaderAndIsr", call -> Optional.ofNullable(
                partitions(cluster, port.get(), call.getArgument(0)).get((int) call.getArgument(1))))));
    }

    /** What the topic has of its own. */
    private static Properties topicConfig(WireCluster cluster, String topic) throws Exception {
        Properties found = new Properties();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            admin.describeConfigs(List.of(resource)).all().get().get(resource).entries().stream()
                .filter(one -> one.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                .forEach(one -> found.put(one.name(), one.value()));
        }
        return found;
    }

    /** As Kafka's own broker would have it. */
    static KafkaConfig config(int id, int port, List<File> data, Map<String, String> properties) {
        Map<String, Object> all = new HashMap<>(properties);
        all.put("process.roles", "broker");
        all.put("node.id", String.valueOf(id));
        all.put("log.dirs", data.stream().map(File::getPath).collect(Collectors.joining(",")));
        all.put("controller.quorum.voters", CONTROLLER_ID + "@localhost:1");
        all.put("controller.listener.names", "CONTROLLER");
        all.put("listeners", properties.get("inter.broker.listener.name") + "://localhost:" + port);
        all.put("listener.security.protocol.map", properties.get("listener.security.protocol.map") + ",CONTROLLER:PLAINTEXT");
        all.keySet().removeIf(key -> key.equals(WireProperties.AUTHORIZER));
        return new KafkaConfig(all, false);
    }

    private static Properties offsetsTopic(KafkaConfig config) {
        Properties found = new Properties();
        found.put("cleanup.policy", "compact");
        found.put("segment.bytes", String.valueOf(config.getInt("offsets.topic.segment.bytes")));
        found.put("compression.type", "producer");
        return found;
    }

    /** One controller to get, and no entries: who goes through them waits for a metadata log, or is there for its ACLs. */
    static Map<Integer, ControllerServer> controllers(WireCluster cluster, boolean hasAcls) {
        return new AbstractMap<>() {
            @Override
            public Set<Entry<Integer, ControllerServer>> entrySet() {
                return Set.of();
            }

            @Override
            public Collection<ControllerServer> values() {
                return hasAcls ? List.of(controller(cluster)) : List.of();
            }

            @Override
            public ControllerServer get(Object id) {
                return controller(cluster);
            }
        };
    }

    /** Its log is empty. */
    static ControllerServer controller(WireCluster cluster) {
        Controller controller = Mockito.mock(Controller.class, only(Map.of(
            "isActive", call -> true,
            "findAllTopicIds", call -> CompletableFuture.completedFuture(topicIds(cluster)))));
        RaftLog log = Mockito.mock(RaftLog.class, only(Map.of("endOffset", call -> new LogOffsetMetadata(0))));
        KafkaRaftManager<?> raft = Mockito.mock(KafkaRaftManager.class, only(Map.of("raftLog", call -> log)));
        return Mockito.mock(ControllerServer.class, only(Map.of(
            "authorizerPlugin", call -> Option.apply(WireAcls.plugin(cluster)),
            "controller", call -> controller,
            "raftManager", call -> raft)));
    }

    private static Map<String, Uuid> topicIds(WireCluster cluster) throws Exception {
        Map<String, Uuid> found = new TreeMap<>();
        try (Admin admin = cluster.internalAdmin(Map.of())) {
            for (TopicListing topic : admin.listTopics().listings().get()) {
                found.put(topic.name(), topic.topicId());
            }
        }
        return found;
    }

    /** The brokers that this one sees, at the addresses of the listener that it is asked by. */
    private static List<Node> alive(WireCluster cluster, int port) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + port))) {
            return List.copyOf(admin.describeCluster().nodes().get());
        }
    }

    /** Those of a partition that this broker sees. */
    private static Map<Integer, Node> replicas(WireCluster cluster, int port, TopicPartition partition) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + port))) {
            TopicDescription described = admin.describeTopics(List.of(partition.topic())).topicNameValues().get(partition.topic()).get();
            return described.partitions().get(partition.partition()).replicas().stream().filter(node -> !node.isEmpty())
                .collect(Collectors.toMap(Node::id, node -> node));
        }
    }

    /** As this broker says. */
    private static Optional<Node> leader(WireCluster cluster, int port, String topic, int partition) throws Exception {
        try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + port))) {
            return admin.describeTopics(List.of(topic)).topicNameValues().get(topic).get().partitions().stream()
                .filter(one -> one.partition() == partition && one.leader() != null && !one.leader().isEmpty())
                .map(TopicPartitionInfo::leader).findFirst();
        } catch (ExecutionException error) {
            return Optional.empty();
        }
    }

    /**
     * Of each partition, as this broker says; empty for a topic that it does not know. One that has no leader counts once
     * no replica of it is alive: until then a new one waits for its first.
     */
    static Map<Integer, LeaderAndIsr> partitions(WireCluster cluster, int port, String topic) throws Exception {
        Map<Integer, LeaderAndIsr> found = new TreeMap<>();
        try (Admin admin = cluster.internalAdmin(Map.of("bootstrap.servers", "localhost:" + port))) {
            TopicDescription described = admin.describeTopics(List.of(topic)).topicNameValues().get(topic).get();
            for (TopicPartitionInfo one : described.partitions()) {
                boolean hasLeader = one.leader() != null && !one.leader().isEmpty();
                if (hasLeader || one.replicas().stream().allMatch(Node::isEmpty)) {
                    found.put(one.partition(), new LeaderAndIsr(hasLeader ? one.leader().id() : LeaderAndIsr.NO_LEADER, 0,
                        one.isr().stream().map(Node::id).toList(), LeaderRecoveryState.RECOVERED, 0));
                }
            }
        } catch (ExecutionException error) {
            if (!(error.getCause() instanceof UnknownTopicOrPartitionException)) {
                throw error;
            }
        }
        return found;
    }
}
