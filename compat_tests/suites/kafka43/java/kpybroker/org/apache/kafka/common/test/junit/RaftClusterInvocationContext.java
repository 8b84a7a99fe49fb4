package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.utils.Exit;

import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

import java.util.List;

/**
 * In place of Kafka's own class in its tests: a fresh kpybroker for each of them. Brokers of ours have no KRaft
 * controller, so that a test runs once where Kafka runs it with the controller both beside and inside the broker.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String baseDisplayName;
    private final ClusterConfig clusterConfig;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String baseDisplayName, ClusterConfig clusterConfig, boolean isCombined) {
        this.baseDisplayName = baseDisplayName;
        this.clusterConfig = clusterConfig;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int invocationIndex) {
        return String.format("%s [%d]", baseDisplayName, invocationIndex);
    }

    /** A tool that fails would end the JVM, and with it all tests of the class. */
    private static void fail(int status, String message) {
        throw new AssertionError("the tool exits with " + status + ": " + message);
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        WireInstance cluster = new WireInstance(clusterConfig, isCombined);
        if (isCombined && clusterConfig.clusterTypes().contains(Type.KRAFT)) {
            return List.of(
                (ExecutionCondition) context -> ConditionEvaluationResult.disabled("the same as isolated"),
                new ClusterInstanceParameterResolver(cluster));
        }
        return List.of(
            (BeforeEachCallback) context -> {
                Exit.setExitProcedure(RaftClusterInvocationContext::fail);
                if (clusterConfig.isAutoStart()) {
                    cluster.start();
                }
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster));
    }
}
