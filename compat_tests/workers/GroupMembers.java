import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups, many in one JVM. Each says what happens to it, a JSON line an event, with System.nanoTime().
 *
 *     start NAME KEY=VALUE...   settings of a consumer, and of ours: topics=A,B or pattern=RE2; commit=sync|async|none
 *     stall NAME MILLISECONDS   before its next poll, once
 *     close NAME                as an application that ends
 */
public class GroupMembers {
    private static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "start" -> {
                    Member member = new Member(words[1], Arrays.copyOfRange(words, 2, words.length));
                    MEMBERS.put(words[1], member);
                    member.start();
                }
                case "stall" -> MEMBERS.get(words[1]).stallMs = Long.parseLong(words[2]);
                case "close" -> MEMBERS.get(words[1]).isClosing = true;
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.exit(0);
    }

    private static final class Member extends Thread implements ConsumerRebalanceListener {
        private final Properties settings = new Properties();
        private final String commit;
        volatile long stallMs;
        volatile boolean isClosing;

        Member(String name, String[] words) {
            super(name);
            setDaemon(true);
            settings.put("key.deserializer", StringDeserializer.class.getName());
            settings.put("value.deserializer", StringDeserializer.class.getName());
            for (String word : words) {
                int at = word.indexOf('=');
                settings.put(word.substring(0, at), word.substring(at + 1));
            }
            commit = settings.getProperty("commit", "none");
        }

        @Override
        public void run() {
            Object topics = settings.remove("topics");
            Object pattern = settings.remove("pattern");
            settings.remove("commit");
            KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
            try {
                if (pattern == null)
                    consumer.subscribe(List.of(topics.toString().split(",")), this);
                else
                    consumer.subscribe(new SubscriptionPattern(pattern.toString()), this);
                while (!isClosing)
                    poll(consumer);
                say("closing", "");
            } catch (KafkaException | InterruptedException failed) {
                say("failed", ", \"error\": \"" + failed.getClass().getSimpleName() + "\"");
            } finally {
                consumer.close();
                say("closed", "");
            }
        }

        private void poll(KafkaConsumer<String, String> consumer) throws InterruptedException {
            long stall = stallMs;
            stallMs = 0;
            Thread.sleep(stall);
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(50));
            for (ConsumerRecord<String, String> record : records)
                say("record", String.format(", \"topic\": \"%s\", \"partition\": %d, \"offset\": %d, \"value\": \"%s\"",
                    record.topic(), record.partition(), record.offset(), record.value()));
            if (records.isEmpty())
                return;
            if (commit.equals("async"))
                consumer.commitAsync((offsets, error) -> committed(error));
            if (commit.equals("sync")) {
                try {
                    consumer.commitSync();
                    committed(null);
                } catch (KafkaException refused) {
                    committed(refused);
                }
            }
        }

        private void committed(Exception error) {
            if (error == null)
                say("committed", "");
            else
                say("refused", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            said("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            said("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            said("lost", partitions);
        }

        private void said(String event, Collection<TopicPartition> partitions) {
            String list = partitions.stream()
                .map(one -> "[\"" + one.topic() + "\", " + one.partition() + "]")
                .collect(Collectors.joining(", "));
            say(event, ", \"partitions\": [" + list + "]");
        }

        private void say(String event, String rest) {
            synchronized (System.out) {
                System.out.println(String.format(
                    "{\"member\": \"%s\", \"time_ns\": %d, \"event\": \"%s\"%s}", getName(), System.nanoTime(), event, rest));
            }
        }
    }
}
