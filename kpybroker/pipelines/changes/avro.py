"""Records in Avro with a schema registry: a zero byte, four of the schema's id, and the data.

The schemas are those of the ids in a batch, so one that is new is read when its first record is. Spark's `from_avro`
reads the data. What the registry does not know goes to the dead letters; a registry that is away ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.changes.events import ENVELOPE, described
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.avro import registered
from kpybroker.pipelines.runtime.pipeline import REASON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEADER_BYTES = 5
PLACE = ("topic", "partition", "offset", "key", "value")
PERMISSIVE = {"mode": "PERMISSIVE"}
JSON_OPTIONS = {"ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
CONNECT = {"int": "int32", "long": "int64"}
LOGICAL = {
    "date": "avro.date",
    "timestamp-millis": "avro.timestamp",
    "timestamp-micros": "avro.timestamp",
}


@dataclass(slots=True)
class Registry:
    """Schemas by id, each asked for until it is there."""

    url: str
    _known: dict[int, str] = field(default_factory=dict)

    def schema(self, number: int) -> str | None:
        """The text of a schema; None if there is none of this id that is whole. Raises `PipelineError`."""
        if number not in self._known:
            found = registered(self.url, number)
            if found is None or found.get("references"):
                return None
            self._known[number] = found["schema"]
        return self._known[number]


def check_from_avro() -> None:
    """Raise `PipelineError` if Spark cannot read Avro."""
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    try:
        from_avro(F.lit(None).cast("binary"), '"int"')
    except TypeError:  # py4j's, for a class that is not there
        raise PipelineError(
            "Spark cannot read Avro: spark-avro is missing.",
            "Add its jar to --jars (--jars DIR,DIR), or org.apache.spark:spark-avro to --packages.",
        ) from None


def decoded(records: DataFrame, registry: Registry) -> DataFrame:
    """Event columns and `reason`, as `events.decoded` for JSON."""
    ids = records.select(*PLACE, _id("key").alias("key_id"), _id("value").alias("value_id"))
    pairs = sorted(tuple(row) for row in ids.select("value_id", "key_id").distinct().collect())
    parts = [_of_pair(ids, registry, value_id, key_id) for value_id, key_id in pairs]
    return reduce(lambda first, second: first.unionByName(second), parts) if parts else _empty(records)


def _id(name: str) -> Column:
    """The schema's id of a key or value: 0 of a null, -1 of what has none."""
    from pyspark.sql import functions as F

    data = F.col(name)
    begins = F.hex(F.substring(data, 1, HEADER_BYTES))
    number = F.conv(F.substring(begins, 3, 8), 16, 10).cast("int")
    return F.when(data.isNull(), 0).when(begins.rlike("^00[0-9A-F]{8}$"), number).otherwise(-1)


def _of_pair(ids: DataFrame, registry: Registry, value_id: int, key_id: int) -> DataFrame:
    from pyspark.sql import functions as F

    rows = ids.where((F.col("value_id") == value_id) & (F.col("key_id") == key_id))
    if value_id == 0:
        return described(_opened(rows, None, None))
    texts = [registry.schema(number) if number > 0 else None for number in (value_id, key_id)]
    for part, number, text in (("value", value_id, texts[0]), ("key", key_id, texts[1])):
        if text is None and number != 0:
            what = "is not Avro of a registry" if number < 0 else f"has the schema {number}, unknown to the registry"
            return _broken(rows, f"the {part} {what}")
    names = _names(json.loads(texts[0] or "null"))
    if "op" not in names and "status" not in names:
        return _broken(rows, f"not a change of Debezium's: the schema {value_id} has no op")
    return described(_opened(rows, texts[0], texts[1]))


def _names(schema: Any) -> set[str]:
    return {one["name"] for one in schema.get("fields", ())} if isinstance(schema, dict) else set()


def _opened(rows: DataFrame, value: str | None, key: str | None) -> DataFrame:
    """What `events.described` takes."""
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    def data(name: str) -> Column:
        return F.expr(f"substring({name}, {HEADER_BYTES + 1})")

    nothing = F.lit(None).cast("string")
    if value is None:
        chosen = rows.select(*PLACE, nothing.alias("key_json"), nothing.alias("columns"), nothing.alias("envelope"))
        return chosen.withColumns(
            {"envelope": F.from_json("envelope", ENVELOPE), "after": F.from_json("columns", "map<string,string>")}
        )
    key_json = nothing if key is None else F.to_json(from_avro(data("key"), key, PERMISSIVE), JSON_OPTIONS)
    form = after_columns(json.loads(value))
    found = rows.select(*PLACE, key_json.alias("key_json"), from_avro(data("value"), value, PERMISSIVE).alias("found"))
    after = F.to_json("found.after", JSON_OPTIONS) if form is not None else nothing
    return found.select(
        *(*PLACE, "key_json"),
        F.lit(form).cast("string").alias("columns"),
        # its own fields are read by name, as those of JSON are
        F.from_json(F.to_json("found", JSON_OPTIONS), ENVELOPE).alias("envelope"),
        F.from_json(after, "map<string,string>").alias("after"),
    )


def _broken(rows: DataFrame, reason: str) -> DataFrame:
    from pyspark.sql import functions as F

    return described(_opened(rows, None, None)).withColumn(REASON, F.lit(reason))


def _empty(records: DataFrame) -> DataFrame:
    return described(_opened(records.select(*PLACE), None, None))


def after_columns(envelope: Mapping[str, Any]) -> str | None:
    """The columns of `after` in an envelope's schema, as `columns.columns_of` reads them; None if it has no row."""
    named = dict(_records(envelope, ""))
    for one in envelope["fields"]:
        if one["name"] == "after":
            kind = _not_null(one["type"])
            space = envelope.get("namespace", "")
            record = kind if isinstance(kind, dict) else named.get(kind) or named.get(f"{space}.{kind}") or {}
            return json.dumps([_column(field) for field in record.get("fields", ())])
    return None


def _records(schema: Any, space: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every record in a schema, by its full name."""
    if isinstance(schema, list):
        for one in schema:
            yield from _records(one, space)
    elif isinstance(schema, dict) and schema.get("type") == "record":
        own = schema.get("namespace", space)
        yield (schema["name"] if "." in schema["name"] or not own else f"{own}.{schema['name']}"), schema
        for one in schema["fields"]:
            yield from _records(one["type"], own)
    elif isinstance(schema, dict):
        yield from _records(schema.get("items") or schema.get("values") or schema.get("type"), space)


def _not_null(kind: Any) -> Any:
    return next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind


def _column(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = _not_null(field["type"])
    attributes = kind if isinstance(kind, dict) else {}
    base = attributes.get("type", kind)
    logical = attributes.get("logicalType")
    found = {"field": field["name"], "type": attributes.get("connect.type") or CONNECT.get(str(base), base)}
    if logical == "decimal":
        digits = {"scale": attributes.get("scale", 0), "connect.decimal.precision": attributes["precision"]}
        return {**found, "name": "avro.decimal", "parameters": digits}
    if logical in LOGICAL:
        return {**found, "name": LOGICAL[logical]}
    return {**found, "name": attributes.get("connect.name"), "default": field.get("default")}
