// Kafka's own record classes as a filter: one command a line in, one response a line out. Bytes are in hex, "-" is none.
//
//   dump      HEX                     every batch and record, CRCs checked
//   build     MAGIC CODEC TYPE TIME HEX   the records of HEX built anew by MemoryRecordsBuilder: HEX
//   marker    TYPE EPOCH TIME OFFSET LEADER PID PEPOCH     an end transaction marker's batch: HEX
//   empty     HEX                     what compaction leaves of an idempotent producer's last batch: HEX
//   down      MAGIC OFFSET HEX        MemoryRecords.downConvert: a dump
//   validate  SOURCE TARGET COMPACTED MAGIC TYPE BEFORE AFTER ORIGIN NOW OFFSET EPOCH HEX
//             LogValidator: "LAST MAX CHANGED dump", or "error NAME INDEX..." with the refused records
//   produce   VERSION HEX             ProduceRequest.validateRecords: "ok", or "error NAME"
//
// `java_records.py` compiles and runs it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class Records {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(respond(line.split(" ")));
        }
        out.flush();
    }

    private static String respond(String[] words) {
        try {
            switch (words[0]) {
                case "dump": return dump(records(words[1]));
                case "build": return build(words);
                case "marker": return marker(words);
                case "empty": return empty(words[1]);
                case "down": return dump((MemoryRecords) records(words[3]).downConvert(
                    Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM).records());
                case "validate": return validate(words);
                case "produce":
                    ProduceRequest.validateRecords(Short.parseShort(words[1]), records(words[2]));
                    return "ok";
                default: return "error unknown command " + words[0];
            }
        } catch (RecordValidationException e) {
            StringBuilder text = new StringBuilder("error " + Errors.forException(e.invalidException()));
            e.recordErrors().forEach(error -> text.append(' ').append(error.batchIndex));
            return text.toString();
        } catch (Throwable e) {
            return "error " + Errors.forException(e) + " " + e.toString().replace('\n', ' ');
        }
    }

    private static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(hex.equals("-") ? new byte[0] : HEX.parseHex(hex)));
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) return "-";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return "x" + HEX.formatHex(bytes);
    }

    private static String dump(MemoryRecords records) {
        StringBuilder text = new StringBuilder();
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            boolean modern = batch.magic() >= 2;
            text.append("[").append(batch.magic()).append(' ').append(batch.compressionType().id)
                .append(' ').append(modern ? batch.baseOffset() : -1).append(' ').append(batch.lastOffset())
                .append(' ').append(modern ? batch.countOrNull() : -1)
                .append(' ').append(batch.magic() == 0 ? 0 : batch.timestampType().id)
                .append(' ').append(batch.maxTimestamp()).append(' ').append(batch.producerId())
                .append(' ').append(batch.producerEpoch()).append(' ').append(batch.baseSequence())
                .append(' ').append(batch.isTransactional() ? 1 : 0).append(' ').append(batch.isControlBatch() ? 1 : 0)
                .append(' ').append(batch.partitionLeaderEpoch())
                .append(' ').append(batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : -1);
            for (Record record : batch) {
                record.ensureValid();
                text.append("|").append(record.offset()).append(' ').append(record.timestamp())
                    .append(' ').append(record.sequence())
                    .append(' ').append(hex(record.key())).append(' ').append(hex(record.value()));
                for (Header header : record.headers()) {
                    byte[] value = header.value();
                    text.append(' ').append(hex(ByteBuffer.wrap(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8))))
                        .append('=').append(hex(value == null ? null : ByteBuffer.wrap(value)));
                }
            }
            text.append("]");
        }
        return text.toString();
    }

    private static String build(String[] words) {
        byte magic = Byte.parseByte(words[1]);
        MemoryRecords source = records(words[5]);
        RecordBatch first = source.batches().iterator().next();
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1024), magic,
            compression(words[2]), TimestampType.values()[1 + Integer.parseInt(words[3])],
            first.baseOffset(), Long.parseLong(words[4]), first.producerId(), first.producerEpoch(), first.baseSequence(),
            first.isTransactional(), first.partitionLeaderEpoch());
        for (Record record : source.records()) {
            builder.appendWithOffset(record.offset(), record.timestamp(), record.key(), record.value(),
                magic < 2 ? Record.EMPTY_HEADERS : record.headers());
        }
        return hex(builder.build().buffer()).substring(1);
    }

    private static Compression compression(String id) {
        return Compression.of(CompressionType.forId(Integer.parseInt(id))).build();
    }

    private static String marker(String[] words) {
        EndTransactionMarker marker = new EndTransactionMarker(
            ControlRecordType.fromTypeId(Short.parseShort(words[1])), Integer.parseInt(words[2]));
        return hex(MemoryRecords.withEndTransactionMarker(Long.parseLong(words[4]), Long.parseLong(words[3]),
            Integer.parseInt(words[5]), Long.parseLong(words[6]), Short.parseShort(words[7]), marker).buffer()).substring(1);
    }

    private static String empty(String source) {
        RecordBatch batch = records(source).batches().iterator().next();
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        DefaultRecordBatch.writeEmptyHeader(buffer, batch.magic(), batch.producerId(), batch.producerEpoch(),
            batch.baseSequence(), batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(),
            batch.timestampType(), batch.maxTimestamp(), batch.isTransactional(), batch.isControlBatch());
        return HEX.formatHex(buffer.array());
    }

    private static String validate(String[] words) {
        MemoryRecords source = records(words[12]);
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(Long.parseLong(words[10]));
        long now = Long.parseLong(words[9]);
        LogValidator validator = new LogValidator(source, new TopicPartition("topic", 0), new FixedTime(now),
            CompressionType.forId(Integer.parseInt(words[1])), compression(words[2]), words[3].equals("1"),
            Byte.parseByte(words[4]), TimestampType.values()[1 + Integer.parseInt(words[5])],
            Long.parseLong(words[6]), Long.parseLong(words[7]), Integer.parseInt(words[11]),
            AppendOrigin.valueOf(words[8]), MetadataVersion.latestTesting());
        LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
            offset, new NoMetrics(), BufferSupplier.NO_CACHING);
        return (offset.value - 1) + " " + result.maxTimestampMs + " " + (result.messageSizeMaybeChanged ? 1 : 0) + " " + dump(result.validatedRecords);
    }

    private static class NoMetrics implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    }

    private static class FixedTime implements Time {
        private final long now;
        FixedTime(long now) { this.now = now; }
        public long milliseconds() { return now; }
        public long hiResClockMs() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { throw new UnsupportedOperationException(); }
        public void waitObject(Object obj, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
