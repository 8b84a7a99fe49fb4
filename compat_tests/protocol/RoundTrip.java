// Kafka's own message classes as a filter: one command a line in, one response a line out.
//
//   read    CLASS VERSION HEX   reads the bytes, writes the object again: HEX, or "error TEXT"
//   default CLASS VERSION -     writes an object as its constructor leaves it: HEX, or "error TEXT"
//   header  KEY   VERSION -     header versions of requests and responses: "REQUEST RESPONSE"
//   errors  -     -       -     every error: "CODE NAME", separated by commas
//   apis    -     -       -     every API: "KEY NAME OLDEST LATEST", separated by commas
//
// CLASS is a class name in full. `kafka_messages.py` compiles and runs this.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Collectors;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class RoundTrip {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 4);
            try {
                out.println(respond(words[0], words[1], words[2], words[3]));
            } catch (Exception | NoClassDefFoundError e) {
                out.println("error " + e.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String respond(String command, String subject, String version, String hex) throws Exception {
        switch (command) {
            case "read":
                return read(subject, Short.parseShort(version), HexFormat.of().parseHex(hex));
            case "default":
                return write(message(subject), Short.parseShort(version));
            case "header":
                ApiKeys key = ApiKeys.forId(Integer.parseInt(subject));
                short v = Short.parseShort(version);
                return key.requestHeaderVersion(v) + " " + key.responseHeaderVersion(v);
            case "errors":
                return Arrays.stream(Errors.values()).map(e -> e.code() + " " + e.name())
                    .collect(Collectors.joining(","));
            case "apis":
                return Arrays.stream(ApiKeys.values())
                    .map(k -> k.id + " " + k.name() + " " + k.oldestVersion() + " " + k.latestVersion())
                    .collect(Collectors.joining(","));
            default:
                throw new IllegalArgumentException(command);
        }
    }

    private static ApiMessage message(String className) throws Exception {
        return (ApiMessage) Class.forName(className).getDeclaredConstructor().newInstance();
    }

    private static String read(String className, short version, byte[] bytes) throws Exception {
        ApiMessage message = message(className);
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            return "error " + buffer.remaining() + " bytes were not read";
        }
        return write(message, version);
    }

    private static String write(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            return "error the size was announced " + buffer.remaining() + " bytes too large";
        }
        return HexFormat.of().formatHex(buffer.array());
    }
}
