import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/** Avro's schemas and data as Connect's, with what ConnectToAvro kept in properties. Enums and fixed are not read. */
final class AvroToConnect {
    private AvroToConnect() { }

    static org.apache.kafka.connect.data.Schema schema(Schema avro) {
        return builder(avro, null).build();
    }

    private static SchemaBuilder builder(Schema avro, Object defaultValue) {
        Schema type = ConnectToAvro.notNull(avro);
        SchemaBuilder builder = base(type);
        String name = type.getProp("connect.name");
        if (name == null && type.getType() == Schema.Type.RECORD) {
            name = type.getFullName();
        }
        if (name != null && builder.name() == null) {
            builder.name(name);
        }
        if (type.getObjectProp("connect.version") != null && builder.version() == null) {
            builder.version((Integer) type.getObjectProp("connect.version"));
        }
        if (type.getObjectProp("connect.parameters") instanceof Map) {
            ((Map<?, ?>) type.getObjectProp("connect.parameters")).forEach((key, value) -> {
                if (builder.parameters() == null || !builder.parameters().containsKey(key.toString())) {
                    builder.parameter(key.toString(), value.toString());
                }
            });
        }
        if (avro.getType() == Schema.Type.UNION) {
            builder.optional();
        }
        if (defaultValue != null && defaultValue != JsonProperties.NULL_VALUE && type.getLogicalType() == null) {
            Object value = value(builder, defaultValue);
            builder.defaultValue(value);
        }
        return builder;
    }

    private static SchemaBuilder base(Schema type) {
        String logical = type.getProp("logicalType");
        switch (type.getType()) {
            case RECORD:
                SchemaBuilder struct = SchemaBuilder.struct();
                for (Schema.Field field : type.getFields()) {
                    struct.field(field.name(), builder(field.schema(), field.defaultVal()).build());
                }
                return struct;
            case ARRAY: return SchemaBuilder.array(schema(type.getElementType()));
            case MAP:
                return SchemaBuilder.map(org.apache.kafka.connect.data.Schema.STRING_SCHEMA,
                    schema(type.getValueType()));
            case INT:
                if ("date".equals(logical)) {
                    return Date.builder();
                }
                return "time-millis".equals(logical) ? Time.builder() : small(type.getProp("connect.type"));
            case LONG: return "timestamp-millis".equals(logical) ? Timestamp.builder() : SchemaBuilder.int64();
            case FLOAT: return SchemaBuilder.float32();
            case DOUBLE: return SchemaBuilder.float64();
            case BOOLEAN: return SchemaBuilder.bool();
            case STRING: return SchemaBuilder.string();
            case BYTES:
                boolean isDecimal = "decimal".equals(logical);
                return isDecimal ? Decimal.builder((Integer) type.getObjectProp("scale")) : SchemaBuilder.bytes();
            default: throw new DataException("no schema of Connect: " + type);
        }
    }

    private static SchemaBuilder small(String connectType) {
        if ("int8".equals(connectType)) {
            return SchemaBuilder.int8();
        }
        return "int16".equals(connectType) ? SchemaBuilder.int16() : SchemaBuilder.int32();
    }

    static Object value(org.apache.kafka.connect.data.Schema schema, Object datum) {
        if (datum == null) {
            return null;
        }
        switch (schema.type()) {
            case STRUCT:
                Struct struct = new Struct(schema);
                IndexedRecord record = (IndexedRecord) datum;
                for (Field field : schema.fields()) {
                    struct.put(field, value(field.schema(), record.get(field.index())));
                }
                return struct;
            case ARRAY:
                List<Object> items = new ArrayList<>();
                ((List<?>) datum).forEach(item -> items.add(value(schema.valueSchema(), item)));
                return items;
            case MAP:
                Map<String, Object> entries = new HashMap<>();
                ((Map<?, ?>) datum).forEach((key, item) ->
                    entries.put(key.toString(), value(schema.valueSchema(), item)));
                return entries;
            case INT8: return ((Integer) datum).byteValue();
            case INT16: return ((Integer) datum).shortValue();
            case STRING: return datum.toString();
            default: return logical(schema, datum);
        }
    }

    private static Object logical(org.apache.kafka.connect.data.Schema schema, Object datum) {
        String name = schema.name() == null ? "" : schema.name();
        switch (name) {
            case Decimal.LOGICAL_NAME:
                ByteBuffer unscaled = ((ByteBuffer) datum).duplicate();
                byte[] bytes = new byte[unscaled.remaining()];
                unscaled.get(bytes);
                return Decimal.toLogical(schema, bytes);
            case Date.LOGICAL_NAME: return Date.toLogical(schema, (Integer) datum);
            case Time.LOGICAL_NAME: return Time.toLogical(schema, (Integer) datum);
            case Timestamp.LOGICAL_NAME: return Timestamp.toLogical(schema, (Long) datum);
            default: return datum;
        }
    }
}
