import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * The keys of brokers and topics that the Kafka on the class path defines, one a line: kind, name, type, default,
 * validator, importance, internal or listed, how it may change; separated by tabs.
 */
public class ConfigKeys {
    public static void main(String[] args) throws Exception {
        Map<String, String> modes = modes();
        print("broker", brokerKeys(), modes);
        print("topic", LogConfig.configDefCopy(), Map.of());
    }

    private static void print(String kind, ConfigDef keys, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys.configKeys()).values()) {
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            System.out.println(String.join("\t", kind, key.name, key.type.name(), String.valueOf(value),
                oneLine(String.valueOf(key.validator)), key.importance.name(),
                key.internalConfig ? "internal" : "listed", modes.getOrDefault(key.name, "read-only")));
        }
    }

    private static String oneLine(String text) {
        return text.replace('\n', ' ').replace('\t', ' ');
    }

    private static ConfigDef brokerKeys() throws Exception {
        try {
            return (ConfigDef) Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig")
                .getField("CONFIG_DEF").get(null);
        } catch (NoSuchFieldException | ClassNotFoundException before4) {
            return (ConfigDef) Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, String> modes() throws Exception {
        Object receiver = null;
        Class<?> dynamic;
        try {
            dynamic = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig");
        } catch (ClassNotFoundException before4) {
            dynamic = Class.forName("kafka.server.DynamicBrokerConfig$");
            receiver = dynamic.getField("MODULE$").get(null);
        }
        return (Map<String, String>) dynamic.getMethod("dynamicConfigUpdateModes").invoke(receiver);
    }
}
