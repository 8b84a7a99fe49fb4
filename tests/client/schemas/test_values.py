"""Values of the three kinds of schemas, as `topic consume` and `produce` read and write them."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

import pytest
from google.protobuf import descriptor_pb2

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas.registry import Registry, Schema
from kpybroker.client.schemas.values import NotOfSchema, Values


def proto_file() -> str:
    """shop.Order with a number and shop.Order.Line in a list, then shop.Other."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", syntax="proto3", package="shop")
    order = file.message_type.add(name="Order")
    order.field.add(name="order_id", number=1, label=1, type=kinds.TYPE_INT64)
    order.field.add(name="lines", number=2, label=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.Line")
    order.field.add(name="last", number=3, label=1, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.Line")
    by_name = order.nested_type.add(name="ByNameEntry")
    by_name.options.map_entry = True
    by_name.field.add(name="key", number=1, label=1, type=kinds.TYPE_STRING)
    by_name.field.add(name="value", number=2, label=1, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.Line")
    order.field.add(name="by_name", number=4, label=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.ByNameEntry")
    order.nested_type.add(name="Line").field.add(name="text", number=1, label=1, type=kinds.TYPE_STRING)
    file.message_type.add(name="Other").field.add(name="at", number=1, label=1, type=kinds.TYPE_DOUBLE)
    return base64.b64encode(file.SerializeToString()).decode()


JSON_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "to": {"$ref": "place.json"}},
    "required": ["id"],
    "additionalProperties": False,
}
SCHEMAS = {
    1: Schema("AVRO", json.dumps({"type": "record", "name": "O", "fields": [{"name": "id", "type": "int"}]})),
    2: Schema("PROTOBUF", proto_file()),
    3: Schema("JSON", json.dumps(JSON_SCHEMA), (("place.json", json.dumps({"type": "string"})),)),
    4: Schema("XML", "<a/>"),
    5: Schema("AVRO", '{"type": "no such type"}'),
    6: Schema("PROTOBUF", "syntax = 'proto3';"),
}


class Known:
    """A registry with SCHEMAS, of which subject `orders-value` has the third."""

    def schema(self, number: int) -> Schema:
        if number not in SCHEMAS:
            raise CommandError(f"the registry has no schema {number}")
        return SCHEMAS[number]

    def latest(self, subject: str) -> int:
        if subject != "orders-value":
            raise CommandError(f"the registry has no subject {subject}")
        return 3


@pytest.fixture
def values() -> Values:
    return Values(cast(Registry, Known()))


@pytest.mark.parametrize(
    ("number", "message", "value", "data"),
    [
        (1, None, {"id": 7}, b"\x0e"),
        (2, None, {"order_id": "7", "lines": [{"text": "a"}]}, b"\0\x08\x07\x12\x03\n\x01a"),
        (2, "Order", {"order_id": "7"}, b"\0\x08\x07"),
        (2, "Order", {"last": {"text": "a"}, "by_name": {"k": {}}}, b"\0\x1a\x03\n\x01a\x22\x05\n\x01k\x12\0"),
        (2, "shop.Order.Line", {"text": "a"}, b"\x04\0\x02\n\x01a"),
        (2, "Line", {"text": "a"}, b"\x04\0\x02\n\x01a"),
        (2, "shop.Other", {"at": 0.5}, b"\x02\x02\t\0\0\0\0\0\0\xe0?"),
        (3, None, {"id": 7, "to": "Bern"}, b'{"id":7,"to":"Bern"}'),
    ],
)
def test_a_value_is_written_and_read(values: Values, number: int, message: str | None, value: Any, data: bytes) -> None:
    written = values.write(number, message, value)
    assert written == b"\0\0\0\0" + bytes([number]) + data
    assert values.read(written) == value


@pytest.mark.parametrize(
    ("number", "value", "why"),
    [
        (1, {"id": "7"}, "it is not of schema 1: id:"),
        (2, {"order_id": "x"}, "it is not of schema 2"),
        (2, {"no_such": 1}, "no_such"),
        (2, [], "it is not of schema 2"),
        (2, "x", "it is not of schema 2"),
        (2, {"last": []}, "[] is not an object of shop.Order.Line"),
        (2, {"last": ""}, "is not an object of shop.Order.Line"),
        (2, {"lines": [""]}, "is not an object of shop.Order.Line"),
        (2, {"lines": {}}, "lines is not a list"),
        (2, {"by_name": []}, "by_name is not an object"),
        (2, {"by_name": {"k": []}}, "[] is not an object of shop.Order.Line"),
        (3, {"id": "7"}, "'7' is not of type 'integer' at /id"),
        (3, {}, "'id' is a required property"),
        (3, {"id": 1, "x": 1}, "Additional properties"),
        (3, {"id": 1, "to": 5}, "5 is not of type 'string' at /to"),
    ],
)
def test_what_is_not_of_its_schema_is_not_written(values: Values, number: int, value: Any, why: str) -> None:
    with pytest.raises(NotOfSchema) as caught:
        values.write(number, None, value)
    assert why in caught.value.cause


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no id of a schema"),
        (b"\1\0\0\0\1\x0e", "no id of a schema"),
        (b"\0\0\0\0", "no id of a schema"),
        (b"\0\0\0\0\1", "it is not of schema 1: the bytes end too early"),
        (b"\0\0\0\0\1\x0e\x0e", "1 bytes are left"),
        (b"\0\0\0\0\2\0\x08", "it is not of schema 2"),
        (b"\0\0\0\0\2\x02\x7f", "it is not of schema 2"),
        (b"\0\0\0\0\3{", "it is not of schema 3"),
        (b"\0\0\0\0\3\xff", "it is not of schema 3"),
        (b"\0\0\0\0\3NaN", "it is not of schema 3"),
        (b"\0\0\0\0\3" + b"[" * 100_000, "it is not of schema 3"),
        (b"\0\0\0\0\4x", "type XML are not known"),
        (b"\0\0\0\0\5x", "schema 5 cannot be used"),
        (b"\0\0\0\0\6x", "does not compile Protobuf"),
        (b"\0\0\0\0\x63x", "no schema 99"),
    ],
)
def test_bytes_that_are_not_of_a_schema_are_refused(values: Values, data: bytes, why: str) -> None:
    with pytest.raises(CommandError) as caught:
        values.read(data)
    assert why in caught.value.cause


def test_a_schema_is_named_by_id_or_subject(values: Values) -> None:
    assert values.number("7") == 7
    assert values.number("orders-value") == 3
    for named in ("orders", "99999999999"):
        with pytest.raises(CommandError):
            values.number(named)


def test_a_message_is_one_of_a_protobuf_schema(values: Values) -> None:
    with pytest.raises(CommandError) as caught:
        values.codec(2, "shop.Ordr")
    assert "has no message shop.Ordr" in caught.value.cause
    assert "shop.Order, shop.Order.Line, shop.Other" in caught.value.fix
    with pytest.raises(CommandError, match="which has no messages"):
        values.codec(1, "O")
