package org.apache.kafka.common.test.junit;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Kafka's ClusterInstance over the wire. What only Java objects of a broker can give is a NeedsBrokerObjects. */
class WireInstance implements ClusterInstance, WireCluster {
    private static final long DEADLINE_MS = 60000;
    private final ClusterConfig config;
    private final boolean isCombined;
    private final WireBrokers brokers = new WireBrokers();
    private final WireFeatures features = new WireFeatures(this, brokers);
    private final Map<Integer, KafkaBroker> objects = new TreeMap<>();
    private boolean started;
    private boolean stopped;

    WireInstance(ClusterConfig config, boolean isCombined) {
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public void start() {
        if (started) {
            return;
        }
        started = true;
        Map<Integer, Map<String, String>> properties = new TreeMap<>();
        for (int id = 0; id < config.numBrokers(); id++) {
            properties.put(id, propertiesOf(id));
        }
        brokers.start(properties);
        properties.forEach((id, own) -> objects.put(id, WireObjects.broker(
            this, brokers, WireObjects.config(id, brokers.ports().get(id), brokers.data(id), own), () -> brokers.startOne(id))));
        try {
            waitForReadyBrokers();
            finalizeFeatures();
            ServedVersions.limitTests(brokerBoundPorts().get(0));
        } catch (Exception error) {
            throw new IllegalStateException("the cluster did not become ready", error);
        }
    }

    private Map<String, String> propertiesOf(int id) {
        String name = clientListener().value();
        SecurityProtocol protocol = config.brokerSecurityProtocol();
        Map<String, String> all = new HashMap<>(config.serverProperties());
        all.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
        WireProperties.adapt(all, name, protocol);
        if (config.numDisksPerBroker() > 1) {
            all.put("log.dirs", IntStream.range(0, config.numDisksPerBroker())
                .mapToObj(one -> TestUtils.tempDirectory().getPath()).collect(Collectors.joining(",")));
        }
        if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
            all.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
            all.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
            all.putIfAbsent(WireProperties.AUTHORIZER, WireProperties.ACL_AUTHORIZER);
            all.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
            all.putIfAbsent(clientListener().configPrefix() + "plain.sasl.jaas.config", String.format(
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%1$s\" password=\"%2$s\" "
                    + "user_%1$s=\"%2$s\" user_%3$s=\"%4$s\";",
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
        }
        return all;
    }

    /** What the annotation says, or else what Kafka finalizes with the release. */
    private void finalizeFeatures() throws Exception {
        features.finalizeLevel(WireFeatures.GROUP_VERSION, levelOf(Feature.GROUP_VERSION));
        features.finalizeLevel(WireFeatures.TRANSACTION_VERSION, levelOf(Feature.TRANSACTION_VERSION));
        features.finalizeLevel(WireFeatures.SHARE_VERSION, levelOf(Feature.SHARE_VERSION));
        features.finalizeLevel(WireFeatures.STREAMS_VERSION, levelOf(Feature.STREAMS_VERSION));
    }

    private short levelOf(Feature feature) {
        return Optional.ofNullable(config.features().get(feature))
            .orElseGet(() -> feature.defaultLevel(config.metadataVersion()));
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        try {
            return features.levelOf(WireFeatures.GROUP_VERSION) > 0 ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public boolean started() {
        return started;
    }

    @Override
    public void stop() {
        if (!stopped) {
            stopped = true;
            brokers.close();
        }
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int brokerId) {
        brokers.stopOne(brokerId);
    }

    @Override
    public void startBroker(int brokerId) {
        brokers.startOne(brokerId);
    }

    @Override
    public Type type() {
        return isCombined ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return objects;
    }

    @Override
    public Set<Integer> brokerIds() {
        return brokers.ports().keySet();
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        return WireObjects.controllers(this, config.serverProperties().containsKey(WireProperties.PRINCIPAL_BUILDER));
    }

    @Override
    public Set<Integer> controllerIds() {
        return Set.of(WireObjects.CONTROLLER_ID);
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String bootstrapServers() {
        return addresses(brokerBoundPorts());
    }

    private static String addresses(Collection<Integer> ports) {
        return ports.stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
    }

    @Override
    public String bootstrapControllers() {
        throw new NeedsBrokerObjects("the address of a KRaft controller");
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return brokers.ports().keySet().stream().map(id -> brokers.port(id, clientListener())).toList();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        throw new NeedsBrokerObjects("the port of a KRaft controller");
    }

    @Override
    public Admin internalAdmin(Map<String, Object> configs) {
        Map<String, Object> all = new HashMap<>(configs);
        all.putIfAbsent("bootstrap.servers", addresses(brokers.ports().values()));
        return admin(all);
    }

    @Override
    public String clusterId() {
        return idOfCluster();
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        throw new NeedsBrokerObjects("the fault handler");
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        throw new NeedsBrokerObjects("the fault handler");
    }

    @Override
    public List<Authorizer> authorizers() {
        throw new NeedsBrokerObjects("authorizers()");
    }

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        try (Admin admin = internalAdmin(Map.of())) {
            TestUtils.waitForCondition(() -> {
                long up = brokers.ports().keySet().stream().filter(id -> !brokers.isDown(id)).count();
                return admin.describeCluster().nodes().get().size() == up;
            }, DEADLINE_MS, "not all brokers are registered");
        }
    }

    /** Each live broker knows the topic, and every partition of it has a leader if it can have one. */
    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        TestUtils.waitForCondition(() -> {
            for (int id : brokers.ports().keySet()) {
                if (!brokers.isDown(id) && WireObjects.partitions(this, brokers.ports().get(id), topic).size() != partitions) {
                    return false;
                }
            }
            return true;
        }, DEADLINE_MS, topic + " is not on every broker");
    }

    /** No live broker knows the topic; what is left on disks is not seen from here. */
    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        TestUtils.waitForCondition(() -> {
            for (int id : brokers.ports().keySet()) {
                if (!brokers.isDown(id) && !WireObjects.partitions(this, brokers.ports().get(id), topic).isEmpty()) {
                    return false;
                }
            }
            return true;
        }, DEADLINE_MS, topic + " is still on a broker");
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        try (Admin admin = internalAdmin(Map.of())) {
            TestUtils.waitForCondition(() -> admin.describeAcls(filter).values().get().stream().map(AclBinding::entry)
                .collect(Collectors.toSet()).equals(new HashSet<>(entries)), DEADLINE_MS, "not these ACLs: " + entries);
        }
    }

    /** Nothing to wait for: an Admin of ours has already seen the change, or a condition of the test waits. */
    @Override
    public void ensureConsistentMetadata() {
    }
}
