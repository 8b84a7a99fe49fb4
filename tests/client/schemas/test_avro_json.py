"""Avro's binary form and its JSON form."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.schemas.avro_json import AvroJson, BadValue

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
HASH = {"type": "fixed", "name": "Hash", "size": 2}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "next", "type": ["null", "Order"], "default": None},
        {"name": "any", "type": ["null", "int", "long", COLOUR, HASH, "bytes", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
    ],
}


def avro(schema: Any) -> AvroJson:
    return AvroJson(json.dumps(schema))


SCHEMAS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ("double", st.floats(allow_nan=False, allow_infinity=False)),
    ("string", st.text()),
    (COLOUR, st.sampled_from(["RED", "GREEN"])),
    ({"type": "array", "items": "long"}, st.lists(st.integers(-(2**63), 2**63 - 1))),
    ({"type": "map", "values": {"type": "array", "items": "string"}}, st.dictionaries(st.text(), st.lists(st.text()))),
    (
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}]},
        st.fixed_dictionaries({"a": st.integers(-100, 100), "b": st.text()}),
    ),
]


@pytest.mark.parametrize(("schema", "values"), SCHEMAS, ids=lambda one: str(one)[:30])
def test_both_ways_are_fastavros_bytes(schema: Any, values: st.SearchStrategy[Any]) -> None:
    made = avro(schema)

    @given(values)
    def check(value: Any) -> None:
        theirs = io.BytesIO()
        fastavro.schemaless_writer(theirs, fastavro.parse_schema(schema), value)
        assert made.write(value) == theirs.getvalue()
        assert made.read(theirs.getvalue()) == (pytest.approx(value) if schema == "float" else value)
        assert made.write(made.read(theirs.getvalue())) == theirs.getvalue()

    check()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (None, None),
        ({"int": 5}, {"int": 5}),
        ({"long": 5}, {"long": 5}),
        ({"shop.Colour": "RED"}, {"shop.Colour": "RED"}),
        ({"shop.Hash": "\x00\xff"}, {"shop.Hash": "\x00\xff"}),
        ({"bytes": "\x00\xff"}, {"bytes": "\x00\xff"}),
        ({"string": "RED"}, {"string": "RED"}),
        (5, {"int": 5}),
        (2**40, {"long": 2**40}),
    ],
)
def test_types_of_a_union_are_kept(written: Any, shown: Any) -> None:
    order = avro(ORDER)
    assert order.read(order.write({"id": 1, "any": written}))["any"] == shown


def test_a_record_within_itself_and_what_is_left_out() -> None:
    order = avro(ORDER)
    value = {"id": 1, "note": "x", "next": {"shop.Order": {"id": 2, "next": {"id": 3}}}, "at": 7}
    found = order.read(order.write(value))
    assert found["note"] == {"string": "x"}
    assert found["next"]["shop.Order"]["next"]["shop.Order"]["id"] == 3
    assert (found["at"], found["next"]["shop.Order"]["at"]) == (7, 0)
    assert order.write(found) == order.write(value)


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (ORDER, {}, "the field 'id' of shop.Order is missing"),
        (ORDER, {"id": 1, "nte": "x"}, "shop.Order has no field 'nte'"),
        (ORDER, {"id": "1"}, 'id: "1" is not a whole number (long)'),
        (ORDER, {"id": 1.5}, "id: 1.5 is not a whole number (long)"),
        (ORDER, {"id": True}, "id: true is not a whole number (long)"),
        (ORDER, {"id": 2**63}, "id: 9223372036854775808 is out of the range of long"),
        (ORDER, {"id": 1, "note": 5}, "note: 5 is not a string"),
        (ORDER, {"id": 1, "next": {"shop.Order": {}}}, "next.shop.Order: the field 'id' of shop.Order is missing"),
        (ORDER, {"id": 1, "any": "RED"}, 'any: "RED" may be several types of the union'),
        (ORDER, {"id": 1, "any": 1.5}, "any: 1.5 has no type of the union"),
        (ORDER, [], "[] is not an object of shop.Order"),
        (COLOUR, "BLUE", '"BLUE" is no symbol of Colour'),
        (COLOUR, ["RED"], "is no symbol"),
        (HASH, "abc", "3 bytes, and Hash has 2"),
        (HASH, "\u0100a", "no bytes"),
        ("int", 2**31, "out of the range of int"),
        ("float", 1e39, "out of the range of float"),
        ("double", "1", "is not a number (double)"),
        ("double", 10**400, "out of the range of double"),
        ("boolean", 1, "is not a boolean"),
        ("null", 0, "0 is not null"),
        ("string", "\ud800", "half of a surrogate pair"),
        ({"type": "array", "items": "int"}, [1, "x"], '1: "x" is not a whole number'),
        ({"type": "array", "items": "int"}, {"a": 1}, "is not a list"),
        ({"type": "map", "values": "int"}, {"a": "x"}, 'a: "x" is not a whole number'),
        ({"type": "map", "values": "int"}, "x", "is not an object"),
    ],
)
def test_what_is_not_of_the_schema_is_not_written(schema: Any, value: Any, why: str) -> None:
    with pytest.raises(BadValue) as caught:
        avro(schema).write(value)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ("long", b"", "end too early"),
        ("long", b"\xff" * 11, "more than ten bytes"),
        ("long", b"\2\2", "1 bytes are left"),
        ("string", b"\x20ab", "end too early"),
        ("string", b"\x05", "end too early"),
        ("string", b"\2\xff", "not UTF-8"),
        ("boolean", b"\2", "no boolean"),
        (COLOUR, b"\x04", "no symbol of an enum with number 2"),
        (COLOUR, b"\1", "no symbol of an enum with number -1"),
        (["null", "int"], b"\x04", "no type of a union with number 2"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\0", "too many values without bytes"),
        ({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}, b"\2" * 5000, "too deeply"),
    ],
)
def test_bytes_that_are_not_of_the_schema_are_refused(schema: Any, data: bytes, why: str) -> None:
    with pytest.raises(BadValue) as caught:
        avro(schema).read(data)
    assert why in str(caught.value)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = None
    for _ in range(2000):
        value = {"n": {"L": value}} if value is not None else {"n": None}
    with pytest.raises(BadValue, match="too deeply"):
        avro({"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}).write(value)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_numbers_that_json_has_not(kind: str, name: str) -> None:
    made = avro(kind)
    assert made.read(made.write(name)) == name


def test_a_float_has_the_digits_that_it_needs() -> None:
    made = avro("float")
    assert made.read(made.write(0.1)) == 0.1
    assert made.read(made.write(16777217)) == 16777216


@given(st.binary(max_size=60))
def test_no_bytes_fail_in_another_way(data: bytes) -> None:
    try:
        value = avro(ORDER).read(data)
    except BadValue:
        return
    json.dumps(value, allow_nan=False)
    avro(ORDER).write(value)


def test_types_of_other_schemas() -> None:
    place = json.dumps({"type": "record", "name": "geo.Place", "fields": [{"name": "city", "type": "string"}]})
    text = json.dumps({"type": "record", "name": "O", "fields": [{"name": "to", "type": "geo.Place"}]})
    made = AvroJson(text, (("geo.Place", place),))
    assert made.read(made.write({"to": {"city": "Bern"}})) == {"to": {"city": "Bern"}}
    broken = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 5})
    assert AvroJson(broken).write("a") == b"\2a"
