import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import kafka.server.ReplicaManager;
import kafka.server.share.SharePartition;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData.AcquiredRecords;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.fetch.DelayedShareFetchKey;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.share.persister.*;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Kafka's class SharePartition with a log, a clock and a share coordinator that a script commands. One script a line in,
 * its steps separated by ';'; one line out, what was seen after each step, separated by " | ".
 * compat_tests/groups/share_partitions.py has the language, and does the same to kpybroker's machine.
 */
public class SharePartitions {
    private static final String GROUP = "g";
    private static final TopicIdPartition PARTITION = new TopicIdPartition(new Uuid(1, 1), 0, "t");

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(played(line));
        out.flush();
    }

    private static String played(String script) throws Exception {
        List<String> seen = new ArrayList<>();
        SharePartitions partition = new SharePartitions();
        for (String step : script.split(";")) {
            try {
                seen.add(partition.step(step.split(" ")));
            } catch (InvocationTargetException e) {
                return String.join(" | ", seen) + " | throws " + e.getCause();
            } catch (RuntimeException e) {
                return String.join(" | ", seen) + " | throws " + e;
            }
        }
        return String.join(" | ", seen);
    }

    /** Writes that were asked for in one step: all end alike. */
    private record Bundle(List<Write> writes, CompletableFuture<Void> request) { }

    private record Write(PartitionStateBatchData data, CompletableFuture<WriteShareGroupStateResult> future) { }

    private record Row(long first, long last, String text) { }

    private final Clock clock = new Clock();
    private final List<TimerTaskEntry> timers = new ArrayList<>();
    private final List<Write> asked = new ArrayList<>();
    private final List<Bundle> bundles = new ArrayList<>();
    private PersistedState persisted;
    private SharePartition partition;

    private record PersistedState(int epoch, long start, List<PersisterStateBatch> batches) { }

    private String step(String[] words) throws Exception {
        asked.clear();
        CompletableFuture<Void> request = null;
        String result = "";
        switch (words[0]) {
            case "open" -> open(words);
            case "acquire" -> result = acquire(words);
            case "ack" -> request = partition.acknowledge(words[1], acknowledgements(words[2]));
            case "release" -> request = partition.releaseAcquiredRecords(words[1]);
            case "after" -> pass(Long.parseLong(words[1]));
            case "advance" -> call("updateCacheAndOffsets", Long.parseLong(words[1]));
            case "written" -> result = end(bundles.remove(Integer.parseInt(words[1])), Short.parseShort(words[2]));
            default -> throw new IllegalStateException(words[0]);
        }
        if (!asked.isEmpty())
            bundles.add(new Bundle(List.copyOf(asked), request));
        else if (request != null)
            result = error(request);
        return result + state();
    }

    private void open(String[] words) throws Exception {
        List<PersisterStateBatch> batches = new ArrayList<>();
        if (!words[6].equals("-"))
            for (String batch : words[6].split(",")) {
                String[] parts = batch.split("[-:]");
                batches.add(new PersisterStateBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                    Byte.parseByte(parts[2]), Short.parseShort(parts[3])));
            }
        persisted = new PersistedState(Integer.parseInt(words[4]), Long.parseLong(words[5]), batches);
        for (Constructor<?> constructor : SharePartition.class.getDeclaredConstructors())
            if (constructor.getParameterCount() == 12) {
                constructor.setAccessible(true);
                partition = (SharePartition) constructor.newInstance(GROUP, PARTITION, 5, Integer.parseInt(words[3]),
                    Integer.parseInt(words[1]), Integer.parseInt(words[2]), new Timers(), clock, new Coordinator(),
                    unmade(Quiet.class), unmade(NoGroupConfigs.class), null);
            }
        partition.maybeInitialize().get();
    }

    private String acquire(String[] words) {
        List<FetchResponseData.AbortedTransaction> aborted = new ArrayList<>();
        ByteBuffer fetched = ByteBuffer.allocate(words[6].length() * 64);
        for (String batch : words[6].split(",")) {
            boolean isAborted = batch.endsWith("*");
            String[] parts = batch.replace("*", "").split("-");
            long base = Long.parseLong(parts[0]);
            long producerId = isAborted ? 100 + base : RecordBatch.NO_PRODUCER_ID;
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(256), RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                TimestampType.CREATE_TIME, base, 0L, producerId, (short) (isAborted ? 0 : -1), isAborted ? 0 : -1,
                isAborted, 0);
            builder.appendWithOffset(Long.parseLong(parts[1]), 0L, null, new byte[0]);
            fetched.put(builder.build().buffer().duplicate());
            if (isAborted)
                aborted.add(new FetchResponseData.AbortedTransaction().setProducerId(producerId).setFirstOffset(base));
        }
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 1_000_000, 0,
            MemoryRecords.readableRecords(fetched.flip()), Optional.empty(), OptionalLong.empty(), Optional.of(aborted),
            OptionalInt.empty(), false);
        ShareAcquiredRecords acquired = partition.acquire(words[1],
            words[5].equals("strict") ? ShareAcquireMode.RECORD_LIMIT : ShareAcquireMode.BATCH_OPTIMIZED,
            Integer.parseInt(words[4]), Integer.parseInt(words[3]), Long.parseLong(words[2]), data,
            FetchIsolation.TXN_COMMITTED);
        StringBuilder text = new StringBuilder();
        for (AcquiredRecords rows : acquired.acquiredRecords())
            text.append(rows.firstOffset()).append('-').append(rows.lastOffset()).append(':')
                .append(rows.deliveryCount()).append(',');
        return text.toString();
    }

    private static List<ShareAcknowledgementBatch> acknowledgements(String text) {
        List<ShareAcknowledgementBatch> batches = new ArrayList<>();
        for (String batch : text.split(",")) {
            String[] parts = batch.split("[-:]");
            List<Byte> types = new ArrayList<>();
            for (String type : parts[2].split("\\."))
                types.add(Byte.parseByte(type));
            batches.add(new ShareAcknowledgementBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]), types));
        }
        return batches;
    }

    private void pass(long ms) {
        clock.now += ms;
        while (true) {
            Optional<TimerTaskEntry> due = timers.stream().filter(entry -> entry.expirationMs <= clock.now)
                .min(Comparator.comparingLong(entry -> entry.expirationMs));
            if (due.isEmpty())
                return;
            timers.remove(due.get());
            if (!due.get().cancelled())
                due.get().timerTask.run();
        }
    }

    private String end(Bundle bundle, short error) {
        for (Write write : bundle.writes)
            write.future.complete(new WriteShareGroupStateResult.Builder().setTopicsData(List.of(new TopicData<>(
                PARTITION.topicId(), List.of(PartitionFactory.newPartitionErrorData(0, error, "said so"))))).build());
        return bundle.request == null ? "" : error(bundle.request);
    }

    private static String error(CompletableFuture<Void> request) {
        if (!request.isDone())
            return "open";
        return String.valueOf(request.handle((nothing, e) -> e == null ? Errors.NONE : Errors.forException(e)).join().code());
    }

    private String state() throws Exception {
        StringBuilder text = new StringBuilder(" next=").append(partition.nextFetchOffset())
            .append(" start=").append(call("startOffset")).append(" end=").append(call("endOffset"))
            .append(" done=").append(call("deliveryCompleteCount")).append(" inflight=").append(call("numInFlightRecords"))
            .append(" can=").append(call("canAcquireRecords"));
        for (Bundle bundle : bundles)
            text.append(" write=").append(written(bundle));
        text.append(" runs=").append(runs());
        return text.toString();
    }

    private static String written(Bundle bundle) {
        List<Row> rows = new ArrayList<>();
        for (Write write : bundle.writes)
            for (PersisterStateBatch batch : write.data.stateBatches())
                rows.add(new Row(batch.firstOffset(), batch.lastOffset(),
                    batch.deliveryState() + ":" + batch.deliveryCount()));
        PartitionStateBatchData last = bundle.writes.get(bundle.writes.size() - 1).data;
        return last.stateEpoch() + "/" + last.startOffset() + "/" + last.deliveryCompleteCount() + "/" + joined(rows);
    }

    @SuppressWarnings("unchecked")
    private String runs() throws Exception {
        List<Row> rows = new ArrayList<>();
        for (InFlightBatch batch : ((NavigableMap<Long, InFlightBatch>) call("cachedState")).values()) {
            if (batch.offsetState() == null)
                rows.add(new Row(batch.firstOffset(), batch.lastOffset(), text(batch.batchState().id(),
                    batch.batchDeliveryCount(), batch.batchMemberId(), batch.batchHasOngoingStateTransition())));
            else
                for (Map.Entry<Long, InFlightState> entry : batch.offsetState().entrySet())
                    rows.add(new Row(entry.getKey(), entry.getKey(), text(entry.getValue().state().id(),
                        entry.getValue().deliveryCount(), entry.getValue().memberId(),
                        entry.getValue().hasOngoingStateTransition())));
        }
        return joined(rows);
    }

    private static String text(byte state, int count, String member, boolean pending) {
        return state + ":" + count + ":" + member + (pending ? "?" : "");
    }

    private static String joined(List<Row> rows) {
        rows.sort(Comparator.comparingLong(Row::first));
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < rows.size(); ) {
            int end = at;
            while (end + 1 < rows.size() && rows.get(end + 1).first == rows.get(end).last + 1
                && rows.get(end + 1).text.equals(rows.get(at).text))
                end++;
            text.append(rows.get(at).first).append('-').append(rows.get(end).last).append(':')
                .append(rows.get(at).text).append(',');
            at = end + 1;
        }
        return text.toString();
    }

    private Object call(String name, Object... arguments) throws Exception {
        for (Method method : SharePartition.class.getDeclaredMethods())
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                return method.invoke(partition, arguments);
            }
        throw new NoSuchMethodException(name);
    }

    private class Timers implements Timer {
        public void add(TimerTask task) {
            timers.add(new TimerTaskEntry(task, clock.now + task.delayMs));
        }

        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        public int size() {
            return timers.size();
        }

        public void close() { }
    }

    private class Coordinator implements Persister {
        public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters request) {
            return CompletableFuture.completedFuture(new ReadShareGroupStateResult.Builder().setTopicsData(
                List.of(new TopicData<>(PARTITION.topicId(), List.of(PartitionFactory.newPartitionAllData(
                    0, persisted.epoch, persisted.start, (short) 0, "", persisted.batches))))).build());
        }

        public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters request) {
            PartitionStateBatchData data = request.groupTopicPartitionData().topicsData().get(0).partitions().get(0);
            Write write = new Write(data, new CompletableFuture<>());
            asked.add(write);
            return write.future;
        }

        public CompletableFuture<InitializeShareGroupStateResult> initializeState(
            InitializeShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters request) {
            throw new UnsupportedOperationException();
        }

        public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(
            ReadShareGroupStateSummaryParameters request) {
            throw new UnsupportedOperationException();
        }

        public void stop() { }
    }

    /** An instance whose constructor did not run: what it needs is only what it overrides. */
    private static <T> T unmade(Class<T> of) throws Exception {
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        return of.cast(((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(of));
    }

    private static class NoGroupConfigs extends GroupConfigManager {
        private NoGroupConfigs() {
            super(null, null, null);
        }

        public Optional<GroupConfig> groupConfig(String groupId) {
            return Optional.empty();
        }
    }

    private static class Quiet extends ReplicaManager {
        private Quiet() {
            super(null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
                null, null, null, null);
        }

        public void completeDelayedShareFetchRequest(DelayedShareFetchKey key) { }
    }

    private static class Clock implements Time {
        private long now = 1_000_000;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        public void waitObject(Object on, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
