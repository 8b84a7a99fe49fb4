import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * What Kafka's own classes decide about consumer groups: one command a line in, one line out.
 *
 *     pattern HEX NAME...            "valid" and 0 or 1 for each name, or "invalid" and the description
 *     uniform TOPICS MEMBER...       each member's share: MEMBER=PARTITIONS
 *     range   TOPICS MEMBER...       the same
 *
 * TOPICS is 1=3,2=5: number and partitions of each topic. MEMBER is id|instance|1,2|PARTITIONS: an empty instance id is
 * none, then the subscription, and what is owned. PARTITIONS is 1:0.1,2:4. HEX is a pattern in UTF-8.
 */
public class GroupRules {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            try {
                out.println(words[0].equals("pattern") ? matched(words) : assigned(words));
            } catch (Exception | StackOverflowError e) {
                out.println("error " + e.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    private static String matched(String[] words) {
        String text = new String(HexFormat.of().parseHex(words[1]), StandardCharsets.UTF_8);
        try {
            Pattern pattern = Pattern.compile(text);
            StringBuilder verdicts = new StringBuilder("valid ");
            for (int i = 2; i < words.length; i++)
                verdicts.append(pattern.matcher(words[i]).matches() ? '1' : '0');
            return verdicts.toString();
        } catch (PatternSyntaxException e) {
            return "invalid " + e.getDescription();
        }
    }

    private static String assigned(String[] words) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : words[1].split(","))
            counts.put(id(topic.split("=")[0]), Integer.parseInt(topic.split("=")[1]));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new TreeMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (int i = 2; i < words.length; i++) {
            String[] parts = words[i].split("\\|", -1);
            Set<Uuid> subscribed = new HashSet<>();
            for (String topic : parts[2].split(","))
                if (!topic.isEmpty())
                    subscribed.add(id(topic));
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> owned = partitions(parts[3]);
            owned.forEach((topic, indexes) -> indexes.forEach(
                index -> owners.computeIfAbsent(topic, none -> new HashMap<>()).put(index, parts[0])));
            members.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]), subscribed,
                new Assignment(owned)));
        }
        SubscriptionType type = subscriptions.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        PartitionAssignor assignor = switch (words[0]) {
            case "range" -> new RangeAssignor();
            case "simple" -> new SimpleAssignor();
            default -> new UniformAssignor();
        };
        Map<String, MemberAssignment> shares =
            assignor.assign(new GroupSpecImpl(members, type, owners), new Topics(counts)).members();
        return members.keySet().stream()
            .map(member -> member + "=" + (shares.containsKey(member) ? text(shares.get(member).partitions()) : ""))
            .collect(Collectors.joining(" "));
    }

    private static Map<Uuid, Set<Integer>> partitions(String text) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        for (String topic : text.split(","))
            if (!topic.isEmpty())
                for (String index : topic.split(":")[1].split("\\."))
                    partitions.computeIfAbsent(id(topic.split(":")[0]), none -> new HashSet<>())
                        .add(Integer.parseInt(index));
        return partitions;
    }

    private static String text(Map<Uuid, Set<Integer>> partitions) {
        return new TreeMap<>(partitions).entrySet().stream()
            .filter(topic -> !topic.getValue().isEmpty())
            .map(topic -> topic.getKey().getLeastSignificantBits() + ":" + new TreeSet<>(topic.getValue()).stream()
                .map(String::valueOf).collect(Collectors.joining(".")))
            .collect(Collectors.joining(","));
    }

    private static Uuid id(String number) {
        return new Uuid(1, Long.parseLong(number));
    }

    record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            return Set.of();
        }
    }
}
