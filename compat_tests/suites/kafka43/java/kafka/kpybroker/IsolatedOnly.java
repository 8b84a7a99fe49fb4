package kpybroker;

import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.ClusterTestDefaults;
import org.apache.kafka.common.test.api.ClusterTests;
import org.apache.kafka.common.test.api.Type;

import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** On Kafka itself: a test whose controller may be in a process of its own does not run with it in the broker as well. */
public class IsolatedOnly implements ExecutionCondition {
    private static final String COMBINED = "Type=Raft-Combined";

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        boolean isTwice = context.getDisplayName().contains(COMBINED)
            && context.getTestMethod().map(IsolatedOnly::runsIsolated).orElse(false);
        return isTwice
            ? ConditionEvaluationResult.disabled("the same as isolated") : ConditionEvaluationResult.enabled("");
    }

    /** What a template makes is not known here. */
    private static boolean runsIsolated(Method method) {
        ClusterTest one = method.getAnnotation(ClusterTest.class);
        ClusterTests several = method.getAnnotation(ClusterTests.class);
        return Stream.concat(Stream.ofNullable(one), Stream.ofNullable(several).flatMap(all -> Arrays.stream(all.value())))
            .anyMatch(test -> types(test, method.getDeclaringClass()).contains(Type.KRAFT));
    }

    private static List<Type> types(ClusterTest test, Class<?> declaring) {
        ClusterTestDefaults defaults = declaring.getAnnotation(ClusterTestDefaults.class);
        if (test.types().length > 0) {
            return List.of(test.types());
        }
        return defaults == null ? List.of(Type.values()) : List.of(defaults.types());
    }
}
