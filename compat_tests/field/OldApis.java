import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.api.FetchRequest;
import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.OffsetResponse;
import kafka.javaapi.PartitionMetadata;
import kafka.javaapi.TopicMetadata;
import kafka.javaapi.TopicMetadataRequest;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.Partitioner;
import kafka.producer.ProducerConfig;
import kafka.utils.VerifiableProperties;

/**
 * What an application of the 0.8 era is made of: the Scala producer and SimpleConsumer, through `kafka.javaapi`.
 *
 * <pre>
 * produce HOST:PORT,... TOPIC sync|async none|gzip|snappy COUNT   records with keys, placed by a partitioner of its own
 * consume HOST:PORT TOPIC                                          all of a topic, partition by partition, by offsets
 * commit  HOST:PORT TOPIC GROUP OFFSET                             partition 0, to ZooKeeper (version 0) and the brokers
 * errors  HOST:PORT TOPIC MISSING                                  what is asked for and does not exist
 * </pre>
 *
 * Everything that it learns is a line of standard output.
 */
public class OldApis {
    static final int TIMEOUT_MS = 60_000;
    static final int BUFFER_BYTES = 64 * 1024;
    /** Less than what a partition holds, so that reading takes several requests. */
    static final int FETCH_BYTES_MIN = 1024;
    static final int FETCH_BYTES_MAX = 1 << 20;
    static final int BATCH = 10;
    static final String CLIENT = "old-apis";

    /** Key `n` goes to partition `n % partitions`. */
    public static class ByNumber implements Partitioner {
        public ByNumber(VerifiableProperties properties) {
        }

        @Override
        public int partition(Object key, int partitions) {
            return Integer.parseInt((String) key) % partitions;
        }
    }

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "produce" -> produce(words[1], words[2], words[3], words[4], Integer.parseInt(words[5]));
            case "consume" -> consume(words[1], words[2]);
            case "commit" -> commit(words[1], words[2], words[3], Long.parseLong(words[4]));
            case "errors" -> errors(words[1], words[2], words[3]);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    /** One record alone, and the rest in lists. */
    static void produce(String brokers, String topic, String type, String codec, int count) {
        Properties properties = new Properties();
        properties.put("metadata.broker.list", brokers);
        properties.put("serializer.class", "kafka.serializer.StringEncoder");
        properties.put("partitioner.class", ByNumber.class.getName());
        properties.put("request.required.acks", "-1");
        properties.put("request.timeout.ms", String.valueOf(TIMEOUT_MS));
        properties.put("producer.type", type);
        properties.put("compression.codec", codec);
        Producer<String, String> producer = new Producer<>(new ProducerConfig(properties));
        producer.send(new KeyedMessage<>(topic, "0", "value 0"));
        for (int first = 1; first < count; first += BATCH) {
            List<KeyedMessage<String, String>> some = new ArrayList<>();
            for (int n = first; n < Math.min(first + BATCH, count); n++) {
                some.add(new KeyedMessage<>(topic, String.valueOf(n), "value " + n));
            }
            producer.send(some);
        }
        producer.close();
        System.out.println("sent " + count);
    }

    static void consume(String address, String topic) throws Exception {
        for (Map.Entry<Integer, PartitionMetadata> one : partitions(address, topic).entrySet()) {
            int partition = one.getKey();
            SimpleConsumer leader = connect(one.getValue().leader().host() + ":" + one.getValue().leader().port());
            try {
                long offset = offsets(leader, topic, partition, kafka.api.OffsetRequest.EarliestTime())[0];
                long end = offsets(leader, topic, partition, kafka.api.OffsetRequest.LatestTime())[0];
                System.out.printf("partition %d from %d to %d%n", partition, offset, end);
                int requests = 0;
                for (int bytes = FETCH_BYTES_MIN; offset < end; requests++) {
                    FetchResponse response = fetch(leader, topic, partition, offset, bytes);
                    check(response.errorCode(topic, partition));
                    long before = offset;
                    for (MessageAndOffset message : response.messageSet(topic, partition)) {
                        if (message.offset() < offset) {
                            continue; // of a compressed set that begins before it
                        }
                        System.out.printf("%d %d %s %s%n", partition, message.offset(), text(message.message().key()),
                                text(message.message().payload()));
                        offset = message.nextOffset();
                    }
                    if (offset == before) { // the next message does not fit
                        bytes *= 2;
                        if (bytes > FETCH_BYTES_MAX) {
                            throw new IllegalStateException("nothing at offset " + offset);
                        }
                    }
                }
                System.out.printf("partition %d took %s%n", partition, requests > 1 ? "several requests" : "one");
            } finally {
                leader.close();
            }
        }
    }

    /** By OffsetCommit and OffsetFetch of both versions; 0 is for ZooKeeper, and 1 for the brokers. */
    static void commit(String coordinator, String topic, String group, long offset) throws Exception {
        SimpleConsumer consumer = connect(coordinator);
        TopicAndPartition where = new TopicAndPartition(topic, 0);
        try {
            for (short version : new short[] {0, 1}) {
                show("before", consumer, group, where, version);
                OffsetAndMetadata what = OffsetAndMetadata.apply(offset + version, "by version " + version, -1L);
                OffsetCommitRequest request = new OffsetCommitRequest(
                        group, Collections.singletonMap(where, what), 1, CLIENT, version);
                System.out.printf("committed with version %d: error %d%n", version,
                        consumer.commitOffsets(request).errorCode(where));
                show("after", consumer, group, where, version);
            }
        } finally {
            consumer.close();
        }
    }

    static void show(String when, SimpleConsumer consumer, String group, TopicAndPartition where, short version) {
        OffsetFetchRequest request = new OffsetFetchRequest(group, Arrays.asList(where), version, 1, CLIENT);
        OffsetMetadataAndError found = consumer.fetchOffsets(request).offsets().get(where);
        System.out.printf("%s, version %d: offset %d, metadata '%s', error %d%n", when, version, found.offset(),
                found.metadata(), found.error());
    }

    static void errors(String address, String topic, String missing) throws Exception {
        PartitionMetadata first = partitions(address, topic).get(0);
        SimpleConsumer leader = connect(first.leader().host() + ":" + first.leader().port());
        try {
            System.out.println("an offset that is not there: "
                    + fetch(leader, topic, 0, 1_000_000, BUFFER_BYTES).errorCode(topic, 0));
            System.out.println("a partition that is not there: "
                    + fetch(leader, topic, 99, 0, BUFFER_BYTES).errorCode(topic, 99));
            System.out.println("a topic that is not there: " + fetch(leader, missing, 0, 0, BUFFER_BYTES).errorCode(missing, 0));
            Map<TopicAndPartition, PartitionOffsetRequestInfo> wanted = Collections.singletonMap(
                    new TopicAndPartition(missing, 0), new PartitionOffsetRequestInfo(-1L, 1));
            OffsetResponse ends = leader.getOffsetsBefore(new OffsetRequest(wanted, (short) 0, CLIENT));
            System.out.println("its end: " + ends.errorCode(missing, 0));
        } finally {
            leader.close();
        }
    }

    static Map<Integer, PartitionMetadata> partitions(String address, String topic) {
        SimpleConsumer any = connect(address);
        try {
            TopicMetadata found = any.send(new TopicMetadataRequest(Arrays.asList(topic))).topicsMetadata().get(0);
            check(found.errorCode());
            Map<Integer, PartitionMetadata> byNumber = new TreeMap<>();
            for (PartitionMetadata one : found.partitionsMetadata()) {
                check(one.errorCode());
                byNumber.put(one.partitionId(), one);
            }
            return byNumber;
        } finally {
            any.close();
        }
    }

    static SimpleConsumer connect(String address) {
        String[] parts = address.split(":");
        return new SimpleConsumer(parts[0], Integer.parseInt(parts[1]), TIMEOUT_MS, BUFFER_BYTES, CLIENT);
    }

    static FetchResponse fetch(SimpleConsumer from, String topic, int partition, long offset, int bytes) {
        FetchRequest request = new FetchRequestBuilder()
                .clientId(CLIENT).addFetch(topic, partition, offset, bytes).maxWait(1000).minBytes(1).build();
        return from.fetch(request);
    }

    static long[] offsets(SimpleConsumer from, String topic, int partition, long time) {
        Map<TopicAndPartition, PartitionOffsetRequestInfo> wanted = Collections.singletonMap(
                new TopicAndPartition(topic, partition), new PartitionOffsetRequestInfo(time, 1));
        OffsetResponse response = from.getOffsetsBefore(new OffsetRequest(wanted, (short) 0, CLIENT));
        check(response.errorCode(topic, partition));
        return response.offsets(topic, partition);
    }

    static void check(short code) {
        if (code != 0) {
            throw new IllegalStateException("error " + code);
        }
    }

    static String text(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
    }
}
