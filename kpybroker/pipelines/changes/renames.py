"""Long values of rows whose primary key was changed.

PostgreSQL does not log a long value that an update leaves as it is, and Debezium writes an update of the primary key as
a delete and a create, which have one place in the log. So the create may lack a value that only the deleted row has.
The few events that this needs, those of the keys that were changed so, are followed one by one in the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.changes.columns import NOT_THERE
from kpybroker.pipelines.changes.events import WITH_ROW
from kpybroker.pipelines.changes.points import POSITION
from kpybroker.pipelines.changes.versions import KEY, Table, Versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Values = Mapping[str, str | None]
PLACE = ("topic", "partition", "offset")


def lacks_a_value() -> Column:
    """Whether an event is a create without a long value."""
    from pyspark.sql import functions as F

    values = F.map_values("after")
    return (F.col("op") == "c") & F.exists(values, lambda value: value.isin(*NOT_THERE))


def completed(versions: Versions, before: Table, events: DataFrame) -> DataFrame:
    """The events of a table, those creates with their values."""
    from pyspark.sql import functions as F

    lacking = events.where(lacks_a_value()).select("tx", "lsn")
    deletes = events.where("op = 'd'").join(lacking, ["tx", "lsn"], "left_semi")
    creates = events.where("op = 'c'").join(deletes.select("tx", "lsn"), ["tx", "lsn"], "left_semi")
    keys = deletes.select("key").union(creates.select("key")).distinct()
    followed = events.join(keys, "key", "left_semi").orderBy(POSITION)
    rows = followed.select(*PLACE, "op", "key", "tx", "lsn", "after").collect()
    found = [(*place, after) for place, after in follow((row.asDict() for row in rows), _kept(versions, before, rows))]
    if not found:
        return events
    schema = "topic string, partition int, offset bigint, whole map<string,string>"
    whole = events.sparkSession.createDataFrame(found, schema)
    joined = events.join(F.broadcast(whole), list(PLACE), "left")
    return joined.withColumn("after", F.coalesce("whole", "after")).drop("whole").select(*events.columns)


def _kept(versions: Versions, before: Table, rows: Iterable[Any]) -> dict[str, Values]:
    """The texts and bytes of rows that are there, by key."""
    from pyspark.sql import functions as F

    state = versions.rows(before)
    if state is None:
        return {}
    here = {
        column.name: F.base64(state[f"`{column.name}`"]) if column.type == "binary" else state[f"`{column.name}`"]
        for column in before.columns
        if column.type in ("string", "binary")
    }
    chosen = state.where(state[KEY].isin(sorted({row["key"] for row in rows})))
    found = chosen.select(KEY, *(value.alias(f"v{number}") for number, value in enumerate(here.values()))).collect()
    return {row[0]: dict(zip(here, row[1:], strict=True)) for row in found}


def follow(events: Iterable[Mapping[str, Any]], kept: Mapping[str, Values]) -> list[tuple[tuple[Any, ...], Values]]:
    """(place, row) of the creates that lacked a value, of events in their order, with what their rows were before."""
    values: dict[str, Values] = dict(kept)
    deleted: dict[tuple[int, int], Values] = {}
    found: list[tuple[tuple[Any, ...], Values]] = []
    for event in events:
        key, log = event["key"], (event["tx"], event["lsn"])
        if event["op"] == "d":
            deleted[log] = values.pop(key, {})
        elif event["op"] in WITH_ROW:
            before = deleted.get(log, {}) if event["op"] == "c" else values.get(key, {})
            whole = {name: before.get(name) if value in NOT_THERE else value for name, value in event["after"].items()}
            values[key] = whole
            if event["op"] == "c" and whole != event["after"]:
                found.append((tuple(event[name] for name in PLACE), whole))
    return found
