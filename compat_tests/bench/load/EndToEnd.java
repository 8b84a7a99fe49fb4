// How long one record takes from send() until a consumer has it, as kafka-e2e-latency measures it and with its
// settings, but in microseconds: the tool itself rounds percentiles to whole milliseconds.
//
//     java -cp ... EndToEnd HOST:PORT TOPIC WARM_UP COUNT       prints one JSON object

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class EndToEnd {
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String topic = args[1];
        int warmUp = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[3]);
        Properties consumerProperties = new Properties();
        consumerProperties.put("bootstrap.servers", bootstrap);
        consumerProperties.put("group.id", "end-to-end-" + topic);
        consumerProperties.put("enable.auto.commit", "false");
        consumerProperties.put("auto.offset.reset", "latest");
        consumerProperties.put("fetch.max.wait.ms", "0");
        Properties producerProperties = new Properties();
        producerProperties.put("bootstrap.servers", bootstrap);
        producerProperties.put("linger.ms", "0");
        producerProperties.put("acks", "1");
        try (KafkaConsumer<byte[], byte[]> consumer =
                    new KafkaConsumer<>(consumerProperties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(producerProperties, new ByteArraySerializer(), new ByteArraySerializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToEnd(List.of(partition));
            consumer.position(partition);
            long[] took = new long[count];
            for (int n = -warmUp; n < count; n++) {
                byte[] value = String.format("%0100d", n + warmUp).getBytes();
                long begin = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
                byte[] received = next(consumer);
                long nanoseconds = System.nanoTime() - begin;
                if (!Arrays.equals(value, received)) {
                    throw new IllegalStateException("record " + n + " came back as another one");
                }
                if (n >= 0) {
                    took[n] = nanoseconds;
                }
            }
            Arrays.sort(took);
            System.out.printf(
                "{\"p50_ms\": %.4f, \"p99_ms\": %.4f}%n", took[count / 2] / 1e6, took[count * 99 / 100] / 1e6);
        }
    }

    private static byte[] next(KafkaConsumer<byte[], byte[]> consumer) {
        long end = System.nanoTime() + DEADLINE.toNanos();
        while (System.nanoTime() < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(DEADLINE)) {
                return record.value();
            }
        }
        throw new IllegalStateException("no record within " + DEADLINE);
    }
}
