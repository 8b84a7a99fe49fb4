package org.apache.kafka.common.test.junit;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The brokers of one test that extends Kafka's older harnesses: they share a tree, and start when the test says so. */
public class WireHarness implements WireCluster, AutoCloseable {
    private static final List<String> FEATURES = List.of(
        WireFeatures.GROUP_VERSION, WireFeatures.TRANSACTION_VERSION, WireFeatures.SHARE_VERSION, WireFeatures.STREAMS_VERSION);
    private final BootstrapMetadata levels;
    private final WireBrokers brokers = new WireBrokers();
    private final ControllerServer controller = WireObjects.controller(this);

    public WireHarness(BootstrapMetadata levels) {
        this.levels = levels;
    }

    public ControllerServer controller() {
        return controller;
    }

    /** It does not run yet. */
    public KafkaBroker broker(KafkaConfig config) {
        return WireObjects.broker(this, brokers, config, () -> start(config));
    }

    private void start(KafkaConfig config) throws Exception {
        brokers.join(config.brokerId(), properties(config));
        WireFeatures features = new WireFeatures(this, brokers);
        for (String feature : FEATURES) {
            features.finalizeLevel(feature, levels.featureLevel(feature));
        }
    }

    private static Map<String, String> properties(KafkaConfig config) {
        ListenerName listener = config.interBrokerListenerName();
        if (config.interBrokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            throw new UnsupportedOperationException("only plain listeners in the older harnesses");
        }
        Map<String, String> all = new HashMap<>();
        config.originals().forEach((key, value) -> all.put(key, String.valueOf(value)));
        WireProperties.adapt(all, listener.value(), SecurityProtocol.PLAINTEXT);
        all.put("log.dirs", config.logDirs().stream().map(one -> new File(one).getAbsolutePath()).collect(Collectors.joining(",")));
        return all;
    }

    @Override
    public Admin internalAdmin(Map<String, Object> configs) {
        Map<String, Object> all = new HashMap<>(configs);
        all.putIfAbsent("bootstrap.servers", brokers.ports().entrySet().stream().filter(one -> !brokers.isDown(one.getKey()))
            .map(one -> "localhost:" + one.getValue()).collect(Collectors.joining(",")));
        return Admin.create(all);
    }

    @Override
    public void close() {
        brokers.close();
    }
}
