import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/**
 * Connect's schemas and data as Avro's. What Avro has no word for (Connect's small integers, names, versions and
 * parameters) is kept as a property "connect.*", as other converters do. Maps must have strings as keys.
 */
final class ConnectToAvro {
    private ConnectToAvro() { }

    static Schema schema(org.apache.kafka.connect.data.Schema schema) {
        return schema(schema, new HashMap<>());
    }

    /** `named` are the records that were written already: a name is defined once. */
    private static Schema schema(org.apache.kafka.connect.data.Schema schema, Map<String, Schema> named) {
        Schema base = base(schema, named);
        if (!schema.isOptional()) {
            return base;
        }
        Schema none = Schema.create(Schema.Type.NULL);
        return schema.defaultValue() == null ? Schema.createUnion(none, base) : Schema.createUnion(base, none);
    }

    private static Schema base(org.apache.kafka.connect.data.Schema schema, Map<String, Schema> named) {
        switch (schema.type()) {
            case STRUCT:
                return record(schema, named);
            case ARRAY:
                return Schema.createArray(schema(schema.valueSchema(), named));
            case MAP:
                if (schema.keySchema().type() != org.apache.kafka.connect.data.Schema.Type.STRING) {
                    throw new DataException("Avro's maps have strings as keys, not " + schema.keySchema().type());
                }
                return Schema.createMap(schema(schema.valueSchema(), named));
            default:
                return primitive(schema);
        }
    }

    private static Schema primitive(org.apache.kafka.connect.data.Schema schema) {
        Schema avro = Schema.create(primitiveType(schema.type()));
        String logical = logicalType(schema.name());
        if (logical != null) {
            avro.addProp("logicalType", logical);
        }
        if (Decimal.LOGICAL_NAME.equals(schema.name())) {
            Map<String, String> parameters = schema.parameters();
            avro.addProp("scale", Integer.parseInt(parameters.get(Decimal.SCALE_FIELD)));
            avro.addProp("precision", Integer.parseInt(parameters.getOrDefault("connect.decimal.precision", "64")));
        }
        switch (schema.type()) {
            case INT8:
            case INT16:
                avro.addProp("connect.type", schema.type().getName());
                break;
            default:
        }
        keepNames(schema, avro);
        return avro;
    }

    private static void keepNames(org.apache.kafka.connect.data.Schema schema, Schema avro) {
        if (schema.name() != null) {
            avro.addProp("connect.name", schema.name());
        }
        if (schema.version() != null) {
            avro.addProp("connect.version", schema.version());
        }
        if (schema.parameters() != null && !schema.parameters().isEmpty()) {
            avro.addProp("connect.parameters", schema.parameters());
        }
    }

    private static Schema.Type primitiveType(org.apache.kafka.connect.data.Schema.Type type) {
        switch (type) {
            case INT8: case INT16: case INT32: return Schema.Type.INT;
            case INT64: return Schema.Type.LONG;
            case FLOAT32: return Schema.Type.FLOAT;
            case FLOAT64: return Schema.Type.DOUBLE;
            case BOOLEAN: return Schema.Type.BOOLEAN;
            case STRING: return Schema.Type.STRING;
            case BYTES: return Schema.Type.BYTES;
            default: throw new DataException("no type of Avro: " + type);
        }
    }

    private static String logicalType(String name) {
        if (name == null) {
            return null;
        }
        switch (name) {
            case Decimal.LOGICAL_NAME: return "decimal";
            case Date.LOGICAL_NAME: return "date";
            case Time.LOGICAL_NAME: return "time-millis";
            case Timestamp.LOGICAL_NAME: return "timestamp-millis";
            default: return null;
        }
    }

    private static Schema record(org.apache.kafka.connect.data.Schema schema, Map<String, Schema> named) {
        String name = schema.name() == null ? "ConnectDefault" : schema.name();
        Schema known = named.get(name);
        if (known != null) {
            return known;
        }
        int dot = name.lastIndexOf('.');
        String space = dot < 0 ? null : name.substring(0, dot);
        Schema avro = Schema.createRecord(name.substring(dot + 1), schema.doc(), space, false);
        named.put(name, avro);
        List<Schema.Field> fields = new ArrayList<>();
        for (Field field : schema.fields()) {
            Schema type = schema(field.schema(), named);
            fields.add(new Schema.Field(field.name(), type, field.schema().doc(), defaultOf(field.schema(), type)));
        }
        avro.setFields(fields);
        keepNames(schema, avro);
        return avro;
    }

    /** A field's default as Avro writes it; null if there is none. Those of structs are not kept. */
    private static Object defaultOf(org.apache.kafka.connect.data.Schema schema, Schema avro) {
        Object value = schema.defaultValue();
        if (value == null) {
            return schema.isOptional() ? JsonProperties.NULL_VALUE : null;
        }
        if (value instanceof Struct) {
            return null;
        }
        Object written = value(schema, avro, value);
        return written instanceof ByteBuffer ? ((ByteBuffer) written).array() : written;
    }

    static Object value(org.apache.kafka.connect.data.Schema schema, Schema avro, Object value) {
        if (value == null) {
            return null;
        }
        Schema type = notNull(avro);
        switch (schema.type()) {
            case STRUCT:
                GenericData.Record record = new GenericData.Record(type);
                for (Field field : schema.fields()) {
                    Schema fieldType = type.getField(field.name()).schema();
                    record.put(field.name(), value(field.schema(), fieldType, ((Struct) value).get(field)));
                }
                return record;
            case ARRAY:
                List<Object> items = new ArrayList<>();
                ((List<?>) value).forEach(item ->
                    items.add(value(schema.valueSchema(), type.getElementType(), item)));
                return items;
            case MAP:
                Map<String, Object> entries = new HashMap<>();
                ((Map<?, ?>) value).forEach((key, item) ->
                    entries.put((String) key, value(schema.valueSchema(), type.getValueType(), item)));
                return entries;
            default:
                return primitive(schema, value);
        }
    }

    private static Object primitive(org.apache.kafka.connect.data.Schema schema, Object value) {
        String name = schema.name();
        if (value instanceof BigDecimal) {
            return ByteBuffer.wrap(Decimal.fromLogical(schema, (BigDecimal) value));
        } else if (Date.LOGICAL_NAME.equals(name)) {
            return Date.fromLogical(schema, (java.util.Date) value);
        } else if (Time.LOGICAL_NAME.equals(name)) {
            return Time.fromLogical(schema, (java.util.Date) value);
        } else if (Timestamp.LOGICAL_NAME.equals(name)) {
            return Timestamp.fromLogical(schema, (java.util.Date) value);
        } else if (value instanceof byte[]) {
            return ByteBuffer.wrap((byte[]) value);
        } else if (value instanceof Byte || value instanceof Short) {
            return ((Number) value).intValue();
        }
        return value;
    }

    static Schema notNull(Schema avro) {
        if (avro.getType() != Schema.Type.UNION) {
            return avro;
        }
        List<Schema> types = new ArrayList<>(avro.getTypes());
        types.removeIf(type -> type.getType() == Schema.Type.NULL);
        if (types.size() != 1) {
            throw new DataException("unions of more than null and one type are no schema of Connect: " + avro);
        }
        return types.get(0);
    }
}
