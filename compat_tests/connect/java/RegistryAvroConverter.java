import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * A Kafka Connect converter for Avro with a schema registry, by the registry's REST interface and the usual format:
 * a zero byte, the id in four bytes, the datum.
 *
 * The subject is the topic with "-key" or "-value". A registry that is away, and one that refuses, are a DataException:
 * the task fails, and goes on where it was when it is restarted. It must not be a RetriableException: Kafka 3.9 drops
 * a record whose time for retries is over, or that is retried while its task is stopped, also with errors.tolerance=none.
 * Schemas are kept once they are known: as many as a worker meets.
 *
 * Setting: "schema.registry.url".
 */
public class RegistryAvroConverter implements Converter {
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final int HEAD_BYTES = 5;

    private final HttpClient http = HttpClient.newBuilder().connectTimeout(PATIENCE).build();
    private final ObjectMapper json = new ObjectMapper();
    private final Map<String, Integer> ids = new ConcurrentHashMap<>();
    private final Map<Integer, Schema> schemas = new ConcurrentHashMap<>();
    private String registry;
    private String suffix;

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        Object url = settings.get("schema.registry.url");
        if (url == null) {
            throw new org.apache.kafka.common.config.ConfigException("schema.registry.url is missing");
        }
        registry = url.toString().replaceAll("/+$", "");
        suffix = isKey ? "-key" : "-value";
    }

    @Override
    public byte[] fromConnectData(String topic, org.apache.kafka.connect.data.Schema schema, Object value) {
        if (value == null) {
            return null;
        }
        if (schema == null) {
            throw new DataException(topic + suffix + ": Avro needs data with a schema");
        }
        Schema avro = ConnectToAvro.schema(schema);
        int id = idOf(topic + suffix, avro);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            out.write(ByteBuffer.allocate(HEAD_BYTES).put((byte) 0).putInt(id).array());
            BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
            new GenericDatumWriter<Object>(avro).write(ConnectToAvro.value(schema, avro, value), encoder);
            encoder.flush();
        } catch (IOException | RuntimeException failed) {
            throw new DataException(topic + suffix + ": no datum of its schema", failed);
        }
        return out.toByteArray();
    }

    @Override
    public SchemaAndValue toConnectData(String topic, byte[] data) {
        if (data == null) {
            return SchemaAndValue.NULL;
        }
        if (data.length < HEAD_BYTES || data[0] != 0) {
            throw new DataException(topic + suffix + ": not in the registry's format: it begins with no zero and id");
        }
        Schema avro = schemaOf(ByteBuffer.wrap(data).getInt(1));
        org.apache.kafka.connect.data.Schema schema = AvroToConnect.schema(avro);
        try {
            var decoder = DecoderFactory.get().binaryDecoder(data, HEAD_BYTES, data.length - HEAD_BYTES, null);
            Object datum = new GenericDatumReader<>(avro).read(null, decoder);
            return new SchemaAndValue(schema, AvroToConnect.value(schema, datum));
        } catch (IOException | RuntimeException failed) {
            throw new DataException(topic + suffix + ": no datum of its schema", failed);
        }
    }

    private int idOf(String subject, Schema schema) {
        String text = schema.toString();
        String known = subject + "\n" + text;
        Integer id = ids.get(known);
        if (id == null) {
            String body = JsonNodeFactory.instance.objectNode().put("schema", text).toString();
            String path = "/subjects/" + URLEncoder.encode(subject, StandardCharsets.UTF_8) + "/versions";
            id = ask(request(path).POST(BodyPublishers.ofString(body)).build()).get("id").asInt();
            ids.put(known, id);
        }
        return id;
    }

    private Schema schemaOf(int id) {
        Schema schema = schemas.get(id);
        if (schema == null) {
            String text = ask(request("/schemas/ids/" + id).GET().build()).get("schema").asText();
            schema = new Schema.Parser().parse(text);
            schemas.put(id, schema);
        }
        return schema;
    }

    private HttpRequest.Builder request(String path) {
        String type = "application/vnd.schemaregistry.v1+json";
        return HttpRequest.newBuilder(URI.create(registry + path)).timeout(PATIENCE).header("Content-Type", type);
    }

    private JsonNode ask(HttpRequest request) {
        HttpResponse<String> response;
        try {
            response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() == 200) {
                return json.readTree(response.body());
            }
        } catch (IOException away) {
            throw new DataException("the schema registry does not respond: " + request.uri(), away);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new DataException("stopped while the schema registry was asked", stopped);
        }
        throw new DataException("the schema registry: " + response.statusCode() + " " + response.body());
    }
}
