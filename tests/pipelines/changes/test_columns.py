"""What an event says of its columns, in Connect's schemas and in Avro's."""

from __future__ import annotations

import base64
import json

import pytest

from kpybroker.pipelines.changes.avro import after_columns
from kpybroker.pipelines.changes.columns import DECIMAL, TableColumn, columns_of, decimal_text


def test_types_of_connect_are_those_of_spark() -> None:
    fields = [
        {"field": "id", "type": "int32", "optional": False},
        {"field": "paid", "type": "boolean", "default": False},
        {
            "field": "amount",
            "type": "bytes",
            "name": DECIMAL,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
        },
        {
            "field": "huge",
            "type": "bytes",
            "name": DECIMAL,
            "parameters": {"scale": "2", "connect.decimal.precision": "60"},
        },
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
        {"field": "data", "type": "string", "name": "io.debezium.data.Json", "default": "{}"},
        {"field": "raw", "type": "bytes"},
        {"field": "tags", "type": "array", "items": {"type": "string"}, "default": []},
    ]
    assert columns_of(json.dumps(fields)) == (
        TableColumn("id", "int"),
        TableColumn("paid", "boolean", default="false"),
        TableColumn("amount", "decimal(10,2)", "decimal", scale=2),
        TableColumn("huge", "string", "decimal", scale=2),
        TableColumn("day", "date", "days"),
        TableColumn("data", "string", default="{}"),
        TableColumn("raw", "binary", "base64"),
        TableColumn("tags", "string"),
    )


def test_what_is_not_understood_is_a_text() -> None:
    """A record may say anything, and must not end the run."""
    fields = [
        {"field": "a"},
        {"field": "b", "type": ["int32"], "name": 7, "default": {"x": 1}},
        {"field": "c", "type": "bytes", "name": DECIMAL, "parameters": {"scale": "two"}},
        {"field": "d", "type": "bytes", "name": DECIMAL, "parameters": 5},
        {"field": "e", "type": "bytes", "name": DECIMAL, "parameters": {"scale": "999999999"}},
        {"field": "a", "type": "int32"},
    ]
    assert columns_of(json.dumps(fields)) == (
        TableColumn("a", "int"),
        TableColumn("b", "string"),
        TableColumn("c", "decimal(38,0)", "decimal"),
        TableColumn("d", "decimal(38,0)", "decimal"),
        TableColumn("e", "string"),
    )


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 10**37, -(10**37)])
def test_decimals_are_integers_in_base64(number: int) -> None:
    size = number.bit_length() // 8 + 1
    text = base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
    assert decimal_text(text, 0) == str(number)


def test_a_decimal_has_its_scale_and_what_is_none_is_null() -> None:
    assert decimal_text("AJY=", 2) == "1.50"
    assert decimal_text("7 apples", 2) is None
    assert decimal_text(None, 2) is None


def test_columns_of_avro_are_those_of_the_record_that_after_names() -> None:
    """The record is defined in `before`; logical types are Spark's own."""
    fields = [
        {"name": "id", "type": "long"},
        {"name": "small", "type": {"type": "int", "connect.type": "int16"}},
        {"name": "paid", "type": "boolean", "default": True},
        {"name": "amount", "type": ["null", {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 10}]},
        {"name": "day", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    row = {"type": "record", "name": "Value", "fields": fields}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.public.orders",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "op", "type": "string"},
        ],
    }
    expected = (
        TableColumn("id", "bigint"),
        TableColumn("small", "smallint"),
        TableColumn("paid", "boolean", default="true"),
        TableColumn("amount", "decimal(10,2)", scale=2),
        TableColumn("day", "date", "days"),
        TableColumn("at", "timestamp"),
    )
    assert columns_of(after_columns(envelope) or "") == expected
    envelope["fields"][1]["type"] = ["null", "shop.public.orders.Value"]  # type: ignore[index]
    assert columns_of(after_columns(envelope) or "") == expected
    assert after_columns({"type": "record", "name": "X", "fields": []}) is None
