"""Values with a meaning that Python has no room for: they are shown as the number, text or bytes that was written.

Debezium writes PostgreSQL's `infinity` as a time of the year 294247, and a Timestamp of Protobuf may have any seconds.
fastavro and `json_format` give up the whole message for one such value.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, Final

from fastavro import read
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

OURS: Final = "kpybroker-"
"""Before the name of a logical type: fastavro's own readers stay as they are, for others in this process."""

# --- Avro


def with_plain_values(schema: Any) -> Any:
    """The schema, with fastavro's logical types replaced by ours, which never raise."""
    if isinstance(schema, list):
        return [with_plain_values(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: part if key == "default" else with_plain_values(part) for key, part in schema.items()}
    kind, logical = schema.get("type"), schema.get("logicalType")
    if isinstance(kind, str) and isinstance(logical, str) and f"{kind}-{logical}" in _READERS:
        found["logicalType"] = f"{OURS}{logical}"
    return found


Reader = Callable[..., Any]
"""From the data, the writer's schema and the reader's."""

DECIMAL_BYTES_MAX: Final = 1000
DAY: Final = {"time-millis": 24 * 60 * 60 * 1000, "time-micros": 24 * 60 * 60 * 1000 * 1000}


def _plainly(logical: str, reader: Reader) -> Reader:
    """fastavro's reader, or the data where it has no value or another one."""
    if logical == "uuid":
        return lambda data, writer_schema=None, reader_schema=None: data
    if logical == "decimal":
        return _decimal
    end = DAY.get(logical)

    def read_plainly(data: Any, writer_schema: Any = None, reader_schema: Any = None) -> Any:
        if end is not None and not 0 <= data < end:
            return data
        try:
            return reader(data, writer_schema, reader_schema)
        except (ValueError, ArithmeticError, TypeError, KeyError):
            return data

    return read_plainly


def _decimal(data: bytes, writer_schema: Any = None, reader_schema: Any = None) -> Any:
    """With all its digits: fastavro rounds to the schema's precision."""
    scale = (writer_schema or {}).get("scale", 0)
    if len(data) > DECIMAL_BYTES_MAX or not isinstance(scale, int):
        return data
    try:
        return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)
    except ArithmeticError:
        return data


_EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def _registered() -> frozenset[str]:
    """fastavro looks readers up by the type and the logical type: a dict of it is the place for others' readers."""
    known = dict(read.LOGICAL_READERS)
    for name, reader in known.items():
        kind, _, logical = name.partition("-")
        read.LOGICAL_READERS[f"{kind}-{OURS}{logical}"] = _plainly(logical, reader)
    return frozenset(known)


_READERS: Final = _registered()

# --- Protobuf

LEAVES: Final = frozenset(
    f"google.protobuf.{name}"
    for name in (
        *("Timestamp", "Duration", "FieldMask", "DoubleValue", "FloatValue", "Int64Value", "UInt64Value"),
        *("Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue"),
    )
)
"""Messages that JSON has as one value."""


def fields_of(message: Message) -> Any:
    """A message as JSON's types, field by field; one of LEAVES as one value where it can be."""
    if message.DESCRIPTOR.full_name in LEAVES:
        try:
            return json_format.MessageToDict(message)
        except (json_format.Error, ValueError, TypeError, OverflowError):
            pass
    return {field.name: _field(field, value) for field, value in message.ListFields()}


def _field(field: FieldDescriptor, value: Any) -> Any:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        of = kind.fields_by_name["value"]
        return {str(key): _one(of, value[key]) for key in value}
    if isinstance(value, Message | str | bytes) or not hasattr(value, "__len__"):
        return _one(field, value)
    return [_one(field, one) for one in value]


def _one(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return fields_of(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    return value
