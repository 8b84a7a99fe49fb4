"""A batch of events into the tables: the next version of the one before.

Of each key the newest event counts. A value that an update did not change, and that Debezium left out because it is
long, is that of the event before, or of the row that is there. Only buckets with a key of the batch are written again,
and all of a table whose columns have changed, or that was truncated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpybroker.pipelines.changes.columns import NOT_THERE, TableColumn, columns_of, default_of, in_event
from kpybroker.pipelines.changes.events import TRUNCATE, WITH_ROW
from kpybroker.pipelines.changes.points import POSITION
from kpybroker.pipelines.changes.renames import completed, lacks_a_value
from kpybroker.pipelines.changes.versions import BUCKET, COMMIT, KEY, LSN, Table, Versions
from kpybroker.pipelines.runtime.outputs import JSON_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class Summary:
    """The events of a table: their number by op, their columns, the newest last, the position of the last truncate."""

    table: str
    counts: Mapping[str, int]
    forms: Sequence[str]
    cut: tuple[int, int, int] | None
    lacks: bool
    """Whether a create lacks a value: see `renames`."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A table after a batch: `frame` has its buckets that are written again, `rows` the keys that have changed."""

    name: str
    columns: tuple[TableColumn, ...]
    frame: DataFrame
    rows: DataFrame
    untouched: Mapping[str, str]


def summaries(events: DataFrame) -> dict[str, Summary]:
    """By table, in one pass."""
    from pyspark.sql import functions as F

    lacks = F.coalesce(F.bool_or(lacks_a_value()), F.lit(False)).alias("lacks")
    groups = events.groupBy("table", "op", "columns").agg(
        F.count("*").alias("count"), F.max(POSITION).alias("at"), lacks
    )
    by_table: dict[str, list[Row]] = {}
    for row in groups.orderBy("at").collect():
        by_table.setdefault(row["table"], []).append(row)
    found = {}
    for table, rows in sorted(by_table.items()):
        counts: Counter[str] = Counter()
        for row in rows:
            counts[row["op"]] += row["count"]
        forms = [str(row["columns"]) for row in reversed(rows) if row["columns"] is not None]
        cuts = [(row["at"]["commit"], row["at"]["lsn"], row["at"]["offset"]) for row in rows if row["op"] == TRUNCATE]
        newest_last = list(dict.fromkeys(forms))[::-1]
        lacking = any(row["lacks"] for row in rows)
        found[table] = Summary(table, counts, newest_last, max(cuts, default=None), lacking)
    return found


def merged(
    versions: Versions,
    before: Table,
    events: DataFrame,
    summary: Summary,
    buckets: int,
    hold: Callable[[DataFrame], DataFrame],
) -> Merged:
    """One table of a version after its events of a batch, of which there are some. `hold` keeps a frame in memory."""
    from pyspark.sql import functions as F

    forms, cut = summary.forms, summary.cut
    columns = columns_of(forms[-1]) if forms else before.columns
    if summary.lacks:
        events = completed(versions, before, events)
    changes = _newest(events.where(F.col("op") != TRUNCATE), columns, forms)
    changes = hold(changes.withColumn(BUCKET, _bucket(F.col("key"), buckets)))
    touched = {str(row[0]) for row in changes.select(BUCKET).distinct().collect()}
    if cut is not None or columns != before.columns:
        touched |= set(before.buckets)
    state = versions.rows(before, {bucket: one for bucket, one in before.buckets.items() if bucket in touched})
    joined = hold(_joined(state, before, changes, columns, _after(cut)))
    kept = joined.where(F.col("gone").isNull()).select(
        KEY, COMMIT, LSN, _bucket(F.col(KEY), buckets).alias(BUCKET), *(_quoted(column) for column in columns)
    )
    untouched = {bucket: one for bucket, one in before.buckets.items() if bucket not in touched}
    return Merged(summary.table, columns, kept, _rows(joined, summary.table, columns), untouched)


def _bucket(key: Column, buckets: int) -> Column:
    from pyspark.sql import functions as F

    return F.pmod(F.hash(key), F.lit(buckets))


def _quoted(column: TableColumn) -> Column:
    from pyspark.sql import functions as F

    return F.col(f"`{column.name.replace('`', '``')}`")


def _newest(events: DataFrame, columns: tuple[TableColumn, ...], forms: Sequence[str]) -> DataFrame:
    """By key: `newest`, and for each column a struct of its last value, null where no event has one."""
    from pyspark.sql import functions as F

    event = F.struct("op", "tx", "lsn", F.col(POSITION).alias("at"))
    values = [
        F.max_by(
            F.struct(_value(column, forms).alias("value")),
            F.when(F.col("op").isin(*WITH_ROW) & _is_there(column), F.col(POSITION)),
        ).alias(f"v{number}")
        for number, column in enumerate(columns)
    ]
    return events.groupBy("key").agg(F.max_by(event, POSITION).alias(NEWEST), *values)


def _value(column: TableColumn, forms: Sequence[str]) -> Column:
    """A column's value in an event: read as the event's own columns say, then as the newest do."""
    from pyspark.sql import functions as F

    found = default_of(column)
    for form in forms:
        own = next((one for one in columns_of(form) if one.name == column.name), None)
        if own is not None:
            found = F.when(F.col("columns") == form, in_event(own).try_cast(column.type)).otherwise(found)
    return found


def _is_there(column: TableColumn) -> Column:
    from pyspark.sql import functions as F

    return ~F.coalesce(F.col("after")[column.name].isin(*NOT_THERE), F.lit(False))


def _after(cut: tuple[int, int, int] | None) -> Column:
    """Whether what is at a position (commit, lsn, offset) was not removed by a truncate."""
    from pyspark.sql import functions as F

    if cut is None:
        return F.lit(True)
    return F.col("at") > F.struct(*(F.lit(one).cast("bigint") for one in cut))


def _joined(
    state: DataFrame | None, before: Table, changes: DataFrame, columns: tuple[TableColumn, ...], after: Column
) -> DataFrame:
    """Rows and changes by key: the row afterwards, `gone` with the op that removed it, `changed` where there is one."""
    from pyspark.sql import functions as F

    old = {column.name: column for column in before.columns}
    if state is None:
        nothing = f"{KEY} string, {COMMIT} bigint, {LSN} bigint"
        state, old = changes.sparkSession.createDataFrame([], nothing), {}
    kept = [
        (_quoted(column).try_cast(column.type) if column.name in old else default_of(column)).alias(f"o{number}")
        for number, column in enumerate(columns)
    ]
    rows = state.select(F.col(KEY).alias("key"), COMMIT, LSN, *kept)
    both = rows.join(changes, "key", "full_outer")
    # a row that was read by a snapshot is newer than what is there: an earlier one has been applied before
    newer = F.col(NEWEST).isNotNull() & (
        F.col(COMMIT).isNull()
        | (F.struct(COMMIT, LSN) <= F.struct(*(F.col(f"{NEWEST}.at.{part}") for part in ("commit", "lsn"))))
        | (F.col(f"{NEWEST}.op") == "r")
    )
    at_row = F.struct(F.col(COMMIT).alias("commit"), F.col(LSN).alias("lsn"), F.lit(-1).cast("bigint").alias("offset"))
    found = both.withColumn("newer", newer)
    found = found.withColumn("at", F.when(F.col("newer"), F.col(f"{NEWEST}.at")).otherwise(at_row))
    is_deleted = F.col("newer") & (F.col(f"{NEWEST}.op") == "d")
    values = [
        F.when(F.col("newer") & F.col(f"v{number}").isNotNull(), F.col(f"v{number}.value"))
        .otherwise(F.col(f"o{number}"))
        .alias(column.name)
        for number, column in enumerate(columns)
    ]
    return found.select(
        F.col("key").alias(KEY),
        F.col("at.commit").alias(COMMIT),
        F.col("at.lsn").alias(LSN),
        F.when(~after, F.lit(TRUNCATE)).when(is_deleted, F.lit("d")).alias("gone"),
        F.when(F.col("newer"), F.col(NEWEST)).alias("changed"),
        *values,
    )


def _rows(joined: DataFrame, name: str, columns: tuple[TableColumn, ...]) -> DataFrame:
    """The result `rows`: each key that has changed, its row as JSON, null where there is none any more."""
    from pyspark.sql import functions as F

    options = {**JSON_OPTIONS, "ignoreNullFields": "false"}
    row = F.to_json(F.struct(*(_quoted(column) for column in columns)), options)
    changed = joined.where(F.col("changed").isNotNull() | F.col("gone").isNotNull())
    key = F.concat(F.lit(f'{{"table":{json.dumps(name)},"key":'), F.col(KEY), F.lit("}"))
    return changed.select(
        key.alias("key"),
        F.lit(name).alias("table"),
        F.coalesce("gone", "changed.op").alias("op"),
        F.col("changed.tx").alias("transaction"),
        F.col("changed.lsn").alias("lsn"),
        F.when(F.col("gone").isNull(), row).alias("row"),
    )
