import java.lang.reflect.Field;
import java.util.Collection;
import java.util.TreeMap;

/** Prints a line for each API that a broker of this release advertises, up to 3.9 in ZooKeeper mode: key, oldest and
 * newest version.
 *
 * By reflection, since where that is said has moved between the releases. */
public class ApiVersions {
    public static void main(String[] arguments) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        TreeMap<Integer, String> lines = new TreeMap<>();
        for (Object key : apis(keys)) {
            int id = ((Number) keys.getField("id").get(key)).intValue();
            int oldest = id == 0 ? oldestProduce(keys, key) : version(keys, key, id, "oldestVersion", "MIN_VERSIONS");
            int newest = newest(keys, key, id);
            if (newest >= oldest) lines.put(id, id + " " + oldest + " " + newest);
        }
        lines.values().forEach(System.out::println);
    }

    /** Since 2.8 some APIs are of KRaft only, and since 4.0 none is of ZooKeeper. */
    private static Collection<?> apis(Class<?> keys) throws Exception {
        for (String name : new String[] {"zkBrokerApis", "brokerApis", "enabledApis"}) {
            try {
                return (Collection<?>) keys.getMethod(name).invoke(null);
            } catch (NoSuchMethodException older) {
                continue;
            }
        }
        return java.util.Arrays.asList(keys.getEnumConstants());
    }

    /** Since 4.0 versions of Produce are advertised that are not there, as librdkafka needs them in the list. */
    private static int oldestProduce(Class<?> keys, Object key) throws Exception {
        try {
            return keys.getField("PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION").getShort(null);
        } catch (NoSuchFieldException older) {
            return version(keys, key, 0, "oldestVersion", "MIN_VERSIONS");
        }
    }

    /** Since 3.5 the latest version may be unstable, which a broker does not serve by default. */
    private static int newest(Class<?> keys, Object key, int id) throws Exception {
        try {
            return ((Number) keys.getMethod("latestVersion", boolean.class).invoke(key, false)).intValue();
        } catch (NoSuchMethodException older) {
            return version(keys, key, id, "latestVersion", "CURR_VERSION");
        }
    }

    /** Before 0.11 versions are in arrays of `Protocol`. */
    private static int version(Class<?> keys, Object key, int id, String method, String array) throws Exception {
        try {
            return ((Number) keys.getMethod(method).invoke(key)).intValue();
        } catch (NoSuchMethodException older) {
            Field field = Class.forName("org.apache.kafka.common.protocol.Protocol").getDeclaredField(array);
            field.setAccessible(true);
            return ((short[]) field.get(null))[id];
        }
    }
}
