package kafka.server;

import kafka.utils.Logging;

import org.apache.kafka.common.test.junit.WireHarness;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.fault.FaultHandler;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

import scala.Option;

/** In place of Kafka's own class, which makes the brokers of its older harnesses: here they are of ours. */
public class KRaftQuorumImplementation implements QuorumImplementation {
    private final WireHarness cluster;

    /** The harness has started a controller by now, which has nothing to control, but knows the levels of features. */
    public KRaftQuorumImplementation(
        ControllerServer controller, FaultHandlerFactory faultHandlerFactory, File metadataDir,
        CompletableFuture<Map<Integer, InetSocketAddress>> voters, String clusterId, Logging log, FaultHandler faultHandler
    ) {
        cluster = new WireHarness(controller.bootstrapMetadata());
        controller.shutdown();
    }

    public ControllerServer controllerServer() {
        return cluster.controller();
    }

    @Override
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean startup, Option<String> threadNamePrefix) {
        KafkaBroker broker = cluster.broker(config);
        if (startup) {
            broker.startup();
        }
        return broker;
    }

    @Override
    public void shutdown() {
        cluster.close();
    }
}
