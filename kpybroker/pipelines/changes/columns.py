"""The columns of a table, from what an event says of them, and their values from text."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

UNAVAILABLE = "__debezium_unavailable_value"
NOT_THERE = (UNAVAILABLE, base64.b64encode(UNAVAILABLE.encode()).decode(), json.dumps([UNAVAILABLE]))
"""What Debezium writes for a long value that an update did not change."""
TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "bytes": "binary",
}
NAMES = {
    "io.debezium.time.Date": ("date", "days"),
    "org.apache.kafka.connect.data.Date": ("date", "days"),
    "io.debezium.time.Timestamp": ("timestamp", "millis"),
    "org.apache.kafka.connect.data.Timestamp": ("timestamp", "millis"),
    "io.debezium.time.MicroTimestamp": ("timestamp", "micros"),
    "io.debezium.time.NanoTimestamp": ("timestamp", "nanos"),
    "io.debezium.time.ZonedTimestamp": ("timestamp", "cast"),
    "avro.date": ("date", "cast"),
    "avro.timestamp": ("timestamp", "cast"),
}
"""Name of Connect's type -> Spark's type and how it is read. Those of `avro.` Spark has read already."""
DECIMAL, AVRO_DECIMAL = "org.apache.kafka.connect.data.Decimal", "avro.decimal"
PRECISION_MAX = 38
SCALE_MAX = 16383
"""Of PostgreSQL's numbers."""
MILLIS_MAX = 9_000_000_000_000_000
"""Spark's times are a 64-bit number of microseconds."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """`type` is Spark's. `default` is what rows have that were there before the column, as text."""

    name: str
    type: str
    how: str = "cast"
    default: str | None = None
    scale: int = 0


def columns_of(text: str) -> tuple[TableColumn, ...]:
    """The columns that an event names in JSON: `field`, `type`, and optionally `name`, `default`, `parameters`."""
    return tuple({one["field"]: _column(one) for one in json.loads(text)}.values())


def _column(field: Mapping[str, Any]) -> TableColumn:
    """Of a schema that may be anything but for `field`: what is not understood is a text."""
    name, kind = (value if isinstance(value := field.get(key), str) else "" for key in ("name", "type"))
    default = field.get("default")
    text = None if default is None or isinstance(default, dict | list) else _as_text(default)
    if name in (DECIMAL, AVRO_DECIMAL):
        scale, precision = _parameter(field, "scale", 0), _parameter(field, "connect.decimal.precision", PRECISION_MAX)
        if abs(scale) > SCALE_MAX:
            return TableColumn(field["field"], "string", "cast", text)
        small = 0 <= scale <= precision <= PRECISION_MAX
        how = "decimal" if name == DECIMAL else "cast"
        return TableColumn(field["field"], f"decimal({precision},{scale})" if small else "string", how, text, scale)
    if name in NAMES:
        return TableColumn(field["field"], *NAMES[name], text)
    how = "base64" if kind == "bytes" else "cast"
    return TableColumn(field["field"], TYPES.get(kind, "string"), how, text)


def _parameter(field: Mapping[str, Any], name: str, default: int) -> int:
    parameters = field.get("parameters")
    try:
        return int(parameters[name]) if isinstance(parameters, dict) else default
    except (KeyError, ValueError, TypeError):
        return default


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def value_of(column: TableColumn, text: Column) -> Column:
    """The value of a text; null for one that is none."""
    from pyspark.sql import functions as F

    number = text.try_cast("bigint")
    match column.how:
        case "days":
            return F.date_from_unix_date(text.try_cast("int"))
        case "millis":
            return F.timestamp_millis(F.when(number.between(-MILLIS_MAX, MILLIS_MAX), number))
        case "micros":
            return F.timestamp_micros(number)
        case "nanos":
            return F.timestamp_micros(F.floor(number / 1000))
        case "base64":
            return F.try_to_binary(text, F.lit("base64"))
        case "decimal":
            return F.udf(lambda found: decimal_text(found, column.scale), "string")(text).try_cast(column.type)
    return text if column.type == "string" else text.try_cast(column.type)


def decimal_text(text: str | None, scale: int) -> str | None:
    """The number of Connect's JSON for decimals: bytes of an integer, the highest first, in base64."""
    if text is None:
        return None
    try:
        number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    except ValueError:
        return None
    return format(Decimal(number).scaleb(-scale), "f") if abs(number) < 10**PRECISION_MAX else None


def in_event(column: TableColumn) -> Column:
    """The column's value in an event of such columns: that of its row, or else the default."""
    from pyspark.sql import functions as F

    has = F.map_contains_key("after", column.name)
    return F.when(has, value_of(column, F.col("after")[column.name])).otherwise(default_of(column))


def default_of(column: TableColumn) -> Column:
    """What a row has that was there before the column."""
    from pyspark.sql import functions as F

    if column.default is None:
        return F.lit(None).cast(column.type)
    return value_of(column, F.lit(column.default)).cast(column.type)
