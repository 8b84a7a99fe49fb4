import com.yammer.metrics.core.Clock;
import com.yammer.metrics.core.MetricPredicate;
import com.yammer.metrics.core.Summarizable;
import com.yammer.metrics.reporting.GraphiteReporter;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import kafka.metrics.KafkaMetricsReporter;
import kafka.utils.VerifiableProperties;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;

/**
 * Yammer's own GraphiteReporter in a Kafka broker. `sum` is what KafkaGraphiteMetricsReporter, which no repository of
 * Maven has, adds to its lines.
 */
public class YammerGraphite implements KafkaMetricsReporter {
    @Override
    public void init(VerifiableProperties props) {
        try {
            String host = props.getString("kafka.graphite.metrics.host");
            int port = props.getInt("kafka.graphite.metrics.port");
            GraphiteReporter.DefaultSocketProvider socket = new GraphiteReporter.DefaultSocketProvider(host, port);
            GraphiteReporter reporter = new GraphiteReporter(
                    KafkaYammerMetrics.defaultRegistry(), "kafka", MetricPredicate.ALL, socket, Clock.defaultClock()) {
                @Override
                protected void sendSummarizable(long epoch, String name, Summarizable metric) throws IOException {
                    super.sendSummarizable(epoch, name, metric);
                    sendFloat(epoch, name, "sum", metric.sum());
                }
            };
            reporter.printVMMetrics = false;
            reporter.start(1, TimeUnit.SECONDS);
        } catch (IOException e) {
            throw new RuntimeException(e);
        }
    }
}
