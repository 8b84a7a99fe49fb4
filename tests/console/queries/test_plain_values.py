"""Values with a meaning that Python has no room for: shown as written, with everything around them decoded."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import fastavro
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from kpybroker.client.schemas.plain_values import with_plain_values
from kpybroker.client.schemas.reading import value_of
from kpybroker.client.schemas.registry import Schema
from kpybroker.console.queries.decoding import decoded, with_schemas


class OneSchema(NamedTuple):
    """A registry that has one schema under every id."""

    found: Schema

    def schema(self, number: int) -> Schema:
        return self.found


PREFIX = b"\0\0\0\0\1"


def avro_value(kind: Any, written: Any) -> Any:
    """What is shown of a field of a logical type, in a record with a text before it and a number after it."""

    def record(of: Any) -> dict[str, Any]:
        fields = [{"name": "a", "type": "string"}, {"name": "v", "type": of}, {"name": "z", "type": "int"}]
        return {"type": "record", "name": "V", "fields": fields}

    data = io.BytesIO(PREFIX)
    data.seek(len(PREFIX))
    plain = {key: value for key, value in kind.items() if key != "logicalType"}
    fastavro.schemaless_writer(data, fastavro.parse_schema(record(plain)), {"a": "before", "v": written, "z": 5})
    found = value_of(OneSchema(Schema("AVRO", json.dumps(record(kind)))), data.getvalue()).value
    assert (found["a"], found["z"]) == ("before", 5)
    assert (
        decoded(data.getvalue(), 5000, "auto", with_schemas(OneSchema(Schema("AVRO", json.dumps(record(kind)))))).note
        == ""
    )
    return found["v"]


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


DECIMAL = logical("bytes", "decimal", precision=4, scale=2)


@pytest.mark.parametrize(
    ("kind", "written", "shown"),
    [
        (logical("int", "date"), 1, date(1970, 1, 2)),
        (logical("int", "date"), 2_932_897, 2_932_897),
        (logical("int", "date"), -(2**31), -(2**31)),
        (logical("long", "timestamp-millis"), 1000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (logical("long", "timestamp-millis"), -9_223_372_036_832_400, -9_223_372_036_832_400),
        (logical("long", "timestamp-micros"), 9_223_372_036_825_200_000, 9_223_372_036_825_200_000),
        (logical("long", "local-timestamp-millis"), 2**62, 2**62),
        (logical("long", "local-timestamp-micros"), -(2**63), -(2**63)),
        (logical("int", "time-millis"), 90_000_000, 90_000_000),
        (logical("long", "time-micros"), -1, -1),
        (logical("string", "uuid"), "not-a-uuid", "not-a-uuid"),
        (logical("long", "timestamp-nanos"), 2**62, 2**62),
        (DECIMAL, b"", Decimal("0.00")),
        (DECIMAL, (123_456_789).to_bytes(8, "big"), Decimal("1234567.89")),
        (DECIMAL, b"\x7f" * 2000, b"\x7f" * 2000),
        (logical("fixed", "decimal", name="F", size=2, precision=4, scale=0), b"\xff\xff", Decimal(-1)),
        (logical("bytes", "decimal", precision=4, scale=4), b"\x01", Decimal("0.0001")),
    ],
)
def test_avro(kind: dict[str, Any], written: Any, shown: Any) -> None:
    assert avro_value(kind, written) == shown


def test_only_logical_types_change() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": ["null", logical("int", "date")], "default": logical("int", "date")},
            {"name": "b", "type": {"type": "array", "items": logical("int", "nonsense")}},
        ],
    }
    made = with_plain_values(schema)
    assert made["fields"][0]["type"][1]["logicalType"] == "kpybroker-date"
    assert made["fields"][0]["default"] == logical("int", "date")
    assert made["fields"][1] == schema["fields"][1]


# --- Protobuf


def protobuf() -> descriptor_pb2.FileDescriptorProto:
    """A message with a text, a time, a duration, an Any, many times, times by name, an enumeration and a number."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3", package="p")
    file.dependency.extend(f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "any", "struct"))
    made = file.message_type.add(name="M")
    colours = made.enum_type.add(name="Colour")
    colours.value.add(name="RED", number=0)
    colours.value.add(name="BLUE", number=1)
    entry = made.nested_type.add(name="ByNameEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=FieldDescriptorProto.TYPE_STRING)
    time = {"type": FieldDescriptorProto.TYPE_MESSAGE, "type_name": ".google.protobuf.Timestamp"}
    entry.field.add(name="value", number=2, label=1, **time)
    message = FieldDescriptorProto.TYPE_MESSAGE
    made.field.add(name="text", number=1, label=1, type=FieldDescriptorProto.TYPE_STRING)
    made.field.add(name="at", number=2, label=1, **time)
    made.field.add(name="took", number=3, label=1, type=message, type_name=".google.protobuf.Duration")
    made.field.add(name="any", number=4, label=1, type=message, type_name=".google.protobuf.Any")
    made.field.add(name="times", number=5, label=3, **time)
    made.field.add(name="by_name", number=6, label=3, type=message, type_name=".p.M.ByNameEntry")
    made.field.add(name="colours", number=7, label=3, type=FieldDescriptorProto.TYPE_ENUM, type_name=".p.M.Colour")
    made.field.add(name="number", number=8, label=1, type=FieldDescriptorProto.TYPE_INT64)
    made.field.add(name="json", number=9, label=1, type=message, type_name=".google.protobuf.Value")
    made.field.add(name="inner", number=10, label=1, type=message, type_name=".p.M")
    return file


def protobuf_value(**fields: Any) -> Any:
    pool = descriptor_pool.Default()
    try:
        found = pool.FindMessageTypeByName("p.M")
    except KeyError:
        pool.Add(protobuf())
        found = pool.FindMessageTypeByName("p.M")
    message = message_factory.GetMessageClass(found)(text="before", number=5, **fields)
    schema = Schema("PROTOBUF", base64.b64encode(protobuf().SerializeToString()).decode())
    data = PREFIX + b"\0" + message.SerializeToString()
    assert decoded(data, 5000, "auto", with_schemas(OneSchema(schema))).note == ""
    return value_of(OneSchema(schema), data).value


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"at": {"seconds": 1}}, {"at": "1970-01-01T00:00:01Z", "number": "5"}),
        ({"at": {"seconds": 2**62}}, {"at": {"seconds": 2**62}}),
        ({"at": {"nanos": -5}}, {"at": {"nanos": -5}}),
        ({"took": {"seconds": 2**62, "nanos": 1}}, {"took": {"seconds": 2**62, "nanos": 1}}),
        ({"any": {"type_url": "x/y.Z", "value": b"\xff"}}, {"any": {"type_url": "x/y.Z", "value": b"\xff"}}),
        (
            {"times": [{"seconds": 1}, {"seconds": -(2**60)}]},
            {"times": ["1970-01-01T00:00:01Z", {"seconds": -(2**60)}]},
        ),
        (
            {"by_name": {"a": {"seconds": 1}, "b": {"seconds": 2**60}}, "colours": [1, 7]},
            {"by_name": {"a": "1970-01-01T00:00:01Z", "b": {"seconds": 2**60}}, "colours": ["BLUE", 7]},
        ),
        ({"inner": {"inner": {"at": {"seconds": 2**60}}}}, {"inner": {"inner": {"at": {"seconds": 2**60}}}}),
    ],
)
def test_protobuf(fields: dict[str, Any], shown: dict[str, Any]) -> None:
    is_whole = "number" in shown
    assert protobuf_value(**fields) == {"text": "before", "number": "5" if is_whole else 5, **shown}


def test_a_number_that_json_lacks_is_shown() -> None:
    found = protobuf_value(json={"number_value": float("nan")})
    assert found["text"] == "before"
    assert str(found["json"]["number_value"]) == "nan"


def test_json_that_is_none_is_text() -> None:
    schemas = OneSchema(Schema("JSON", "{}"))
    assert value_of(schemas, PREFIX + b'{"a":' + b"9" * 5000 + b"}").value.startswith('{"a":999')
    assert value_of(schemas, PREFIX + b'{"a":1}').value == {"a": 1}
