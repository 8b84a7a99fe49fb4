import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A transactional producer of the Java client, with the orders and the words of transactional_client.py:
 * JSON lines on stdin, with one response on stdout each. The argument is the specification, as JSON; what is in its
 * "settings" goes to the producer as it is.
 */
public class TransactionalClient {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final KafkaProducer<String, String> producer;

    private TransactionalClient(JsonNode spec) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", spec.get("bootstrap").asText());
        settings.put("transactional.id", spec.get("transactional_id").asText());
        settings.put("transaction.timeout.ms", spec.get("timeout_ms").asText());
        settings.put("max.block.ms", "180000");
        settings.put("delivery.timeout.ms", "180000");
        settings.put("linger.ms", "1");
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        if (spec.has("settings"))
            spec.get("settings").properties().forEach(one -> settings.put(one.getKey(), one.getValue().asText()));
        producer = new KafkaProducer<>(settings);
    }

    public static void main(String[] args) throws Exception {
        TransactionalClient client = new TransactionalClient(JSON.readTree(args[0]));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode response = JSON.createObjectNode();
            try {
                client.act(JSON.readTree(line));
            } catch (Exception failed) {
                Throwable cause = failed.getCause() == null ? failed : failed.getCause();
                response.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            System.out.println(JSON.writeValueAsString(response));
        }
    }

    private void act(JsonNode order) throws Exception {
        switch (order.get(0).asText()) {
            case "init" -> producer.initTransactions();
            case "begin" -> producer.beginTransaction();
            case "produce" -> produce(order.get(1).asText(), order.get(2).asInt(), order.get(3));
            case "offsets" -> offsets(order.get(1).asText(), order.get(2));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            default -> throw new IllegalArgumentException(order.toString());
        }
    }

    private void produce(String topic, int partition, JsonNode values) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : values)
            sent.add(producer.send(new ProducerRecord<>(topic, partition, null, value.asText())));
        producer.flush();
        for (Future<RecordMetadata> one : sent)
            one.get();
    }

    private void offsets(String group, JsonNode offsets) {
        Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
        for (JsonNode one : offsets)
            places.put(
                    new TopicPartition(one.get(0).asText(), one.get(1).asInt()),
                    new OffsetAndMetadata(one.get(2).asLong()));
        producer.sendOffsetsToTransaction(places, new ConsumerGroupMetadata(group));
    }
}
