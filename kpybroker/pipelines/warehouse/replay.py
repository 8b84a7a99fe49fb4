"""Replay: the facts of some hours, made again from the topic, in the place of those that are there.

It reads up to where the stream has committed, and the stream goes on from there: no row is written by both, and the
stream may run. What an hour has now and the replay would not have is a reason to refuse, unless it is allowed: records
may have expired in the topic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime.outputs import PLACE
from kpybroker.pipelines.sinks import table_output
from kpybroker.pipelines.sinks.files import Files
from kpybroker.pipelines.warehouse import hours
from kpybroker.pipelines.warehouse.pipeline import FACT, WAREHOUSE, WarehouseOptions
from kpybroker.pipelines.warehouse.stream import Position, position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY = 'topic, "partition", "offset"'
OF_FACTS = 'facts.topic, facts."partition", facts."offset"'


@dataclass(frozen=True, slots=True)
class Replay:
    """Which hours, [start, end) in UTC and whole, and where they are."""

    start: datetime
    end: datetime
    checkpoint: str
    directories: tuple[str, ...]
    databases: tuple[str, ...] = ()
    allow_data_loss: bool = False
    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of the Java client."""


def replay(spark: SparkSession, wanted: Replay, say: Callable[[str], None]) -> int:
    """Make the facts of those hours again; how many there are. Raises `PipelineError`."""
    for directory in wanted.directories:
        hours.recover(Files(spark, directory), f"{directory}/facts")
    at = position(spark, wanted.checkpoint)
    rows = _facts(spark, wanted, at).persist()
    try:
        count = rows.count()
        say(f"{count} facts in the topic")
        for directory in wanted.directories:
            _check_files(spark, wanted, at, directory, rows)
        for directory in wanted.directories:
            _replace_files(spark, wanted, at, directory, rows)
            say(f"replaced in {directory}")
        for database in wanted.databases:
            _replace_rows(database, wanted, at, rows)
            say(f"replaced in {table_output.shown(database)}")
    finally:
        rows.unpersist()
    return count


def _facts(spark: SparkSession, wanted: Replay, at: Position) -> DataFrame:
    """The facts of those hours in the records before the position."""
    from pyspark.sql import functions as F

    source = {
        **{f"kafka.{key}": value for key, value in wanted.client.items()},
        # and not by subscription: partitions that were added since have no end here
        "assign": json.dumps({topic: [int(number) for number in parts] for topic, parts in at.offsets.items()}),
        "startingOffsets": "earliest",
        "endingOffsets": json.dumps(at.offsets),
    }
    records = spark.read.format("kafka").options(**source).load()
    rows = WAREHOUSE.rows(records, WarehouseOptions())
    rows = rows.where(rows["reason"].isNull() & ~rows["heartbeat"]).select(*FACT)
    return rows.where((F.col("event_time") >= _literal(wanted.start)) & (F.col("event_time") < _literal(wanted.end)))


def _literal(moment: datetime) -> Any:
    from pyspark.sql import functions as F

    return F.timestamp_seconds(F.lit(int(moment.timestamp())))


def _hours(files: Files, wanted: Replay, at: Position, directory: str) -> list[hours.Hour]:
    """All hours that are wanted; those without files get the number of the last batch."""
    there = {hour.start: hour for hour in hours.found(files, f"{directory}/facts", at.batch)}
    found, start = [], wanted.start
    while start < wanted.end:
        empty = hours.Hour(start, f"{directory}/facts/{hours.folder(start)}", (at.batch,))
        found.append(there.get(start, empty))
        start += timedelta(hours=1)
    return found


def _check_files(spark: SparkSession, wanted: Replay, at: Position, directory: str, rows: DataFrame) -> None:
    files = Files(spark, directory)
    paths = [path for hour in _hours(files, wanted, at, directory) for path in hour.paths if files.exists(path)]
    if wanted.allow_data_loss or not paths:
        return
    lost = spark.read.parquet(*paths).join(rows, list(PLACE), "left_anti").count()
    if lost:
        raise _too_few(lost)


def _too_few(lost: int) -> PipelineError:
    cause = f"{lost} facts of these hours are not in the topic any more, or are not understood now."
    return PipelineError(cause, "Choose other hours, or let them go with --allow-data-loss.")


def _replace_files(spark: SparkSession, wanted: Replay, at: Position, directory: str, rows: DataFrame) -> None:
    from pyspark.sql import functions as F

    files = Files(spark, directory)
    for hour in _hours(files, wanted, at, directory):
        end = hour.start + timedelta(hours=1)
        own = rows.where((F.col("event_time") >= _literal(hour.start)) & (F.col("event_time") < _literal(end)))
        size = sum(files.size(path) for path in hour.paths if files.exists(path))
        if size or not own.isEmpty():
            hours.replace(files, f"{directory}/facts", hour, own, size)


def _replace_rows(database: str, wanted: Replay, at: Position, rows: DataFrame) -> None:
    """In one transaction. Raises `PipelineError`."""
    table = table_output.Table(database, "facts", PLACE)
    table_output.prepare(table, rows.schema)
    places = _places(at)
    before = " or ".join('(topic = %s and "partition" = %s and "offset" < %s)' for _ in places)
    statement = f"""delete from facts where event_time >= %s and event_time < %s and ({before})
        and not exists (select from {table_output.STAGED} where ({KEY}) = ({OF_FACTS}))"""
    values = [value for place in places for value in place]
    with table_output.connect(database) as connection:
        table_output.put(connection, table, rows.columns, rows.toLocalIterator())
        lost = connection.execute(statement, [wanted.start, wanted.end, *values]).rowcount
        if lost and not wanted.allow_data_loss:
            raise _too_few(lost)


def _places(at: Position) -> list[tuple[str, int, int]]:
    return [(topic, int(number), offset) for topic, parts in at.offsets.items() for number, offset in parts.items()]


def hour_of(moment: datetime) -> datetime:
    """In UTC. Raises ValueError unless it is the start of an hour."""
    found = moment.astimezone(UTC)
    if found.minute or found.second or found.microsecond:
        raise ValueError("it is not the start of an hour")
    return found
