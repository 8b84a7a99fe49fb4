import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * Counts the words of `lines`; each step of a count is a record in `counts`, as there is no cache. The words travel
 * through the repartition topic of `words`, the counts are kept in the store `counted`.
 *
 *     java WordCount.java BOOTSTRAP APPLICATION_ID STATE_DIR PROTOCOL
 *
 * It runs until its input is closed. The word `poison` makes it ask all instances to shut down; one that does ends
 * with 3.
 */
public class WordCount {
    public static void main(String[] args) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream("lines");
        lines.flatMapValues(line -> List.of(line.split(" ")))
            .peek((key, word) -> {
                if (word.equals("poison")) {
                    throw new IllegalStateException("poison");
                }
            })
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.as("counted"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("counts");

        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args));
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.SHUTDOWN_APPLICATION);
        streams.setStateListener((now, before) -> {
            System.out.println("state: " + now);
            if (now == KafkaStreams.State.ERROR) {
                new Thread(() -> Runtime.getRuntime().halt(3)).start();
            }
        });
        streams.start();
        while (System.in.read() >= 0) {
        }
        System.exit(streams.close(Duration.ofSeconds(30)) ? 0 : 1);
    }

    private static Properties settings(String[] args) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[2]);
        settings.put("group.protocol", args[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put("session.timeout.ms", 6000);
        return settings;
    }
}
