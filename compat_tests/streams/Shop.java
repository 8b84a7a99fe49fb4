import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * A Streams application with exactly_once_v2. Clicks take their user's plan from a table (`visits`), visits and buys of
 * one user are joined when they are close in time (`pairs`), and pairs are counted by page and window of event time
 * (`counts`). What the table has taken in is told in `known`.
 *
 *     java Shop.java BOOTSTRAP APPLICATION_ID STATE_DIR JOIN_MS WINDOW_MS PROTOCOL
 *
 * A click is PAGE/NUMBER. It runs until its input is closed. Without a cache, every click makes one record in `visits`
 * and every pair one in `counts`.
 */
public class Shop {
    private static final Duration GRACE = Duration.ofDays(1);

    public static void main(String[] args) throws Exception {
        Duration together = Duration.ofMillis(Long.parseLong(args[3]));
        Duration window = Duration.ofMillis(Long.parseLong(args[4]));
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> plans = builder.table("plans");
        plans.toStream().to("known");
        KStream<String, String> visits = builder.<String, String>stream("clicks")
            .join(plans, (click, plan) -> click + "/" + plan);
        visits.to("visits");
        KStream<String, String> pairs = visits.join(
            builder.<String, String>stream("buys"),
            (visit, buy) -> visit + "+" + buy,
            JoinWindows.ofTimeDifferenceAndGrace(together, GRACE));
        pairs.to("pairs");
        pairs.selectKey((user, pair) -> pair.substring(0, pair.indexOf('/')))
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(window, GRACE))
            .count()
            .toStream((page, count) -> page.key() + "@" + page.window().start())
            .mapValues(count -> Long.toString(count))
            .to("counts");

        KafkaStreams streams = new KafkaStreams(builder.build(), settings(args[0], args[1], args[2], args[5]));
        streams.setStateListener((now, before) -> System.out.println("state: " + now));
        streams.start();
        while (System.in.read() >= 0) {
        }
        System.exit(streams.close(Duration.ofSeconds(30)) ? 0 : 1);
    }

    private static Properties settings(String bootstrap, String applicationId, String stateDir, String protocol) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, applicationId);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put("statestore.cache.max.bytes", 0);
        // what a transaction has written so far is in the log at once, and it is open most of the time
        settings.put(StreamsConfig.producerPrefix("linger.ms"), 0);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 300);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        if (protocol.equals("classic")) {
            // a member that was killed and comes back takes its own place again, at once; not in the other protocol
            settings.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, "one");
        } else {
            settings.put("group.protocol", protocol);
        }
        return settings;
    }
}
