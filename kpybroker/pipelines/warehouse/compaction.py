"""Compaction: the many small files of an hour that is over become one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.pipelines.sinks.files import Files
from kpybroker.pipelines.warehouse import hours
from kpybroker.pipelines.warehouse.stream import position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compacted(NamedTuple):
    """Hours that were compacted, and files with rows in them before and after."""

    hours: int
    before: int
    after: int


def compact(
    spark: SparkSession, directory: str, checkpoint: str, older_than_s: int, say: Callable[[str], None]
) -> Compacted:
    """Make one batch of each hour that ended so many seconds ago. Raises `PipelineError`.

    What an earlier run had begun is carried out first. The stream may run.
    """
    place = f"{directory}/facts"
    files = Files(spark, place)
    if done := hours.recover(files, place):
        say(f"carried out {done} changes that were begun earlier")
    committed = position(spark, checkpoint).batch
    last = datetime.now(UTC) - timedelta(seconds=older_than_s, hours=1)
    count = before = after = 0
    for hour in hours.found(files, place, committed):
        had = sum(map(len, (_parquet(files, path) for path in hour.paths)))
        if hour.start > last or had < 2:
            continue
        size = sum(map(files.size, hour.paths))
        hours.replace(files, place, hour, spark.read.parquet(*hour.paths), size)
        has = len(_parquet(files, hour.paths[-1]))
        say(f"{hour.start:%Y-%m-%d %H}:00: {had} files are {has}")
        count, before, after = count + 1, before + had, after + has
    return Compacted(count, before, after)


def _parquet(files: Files, place: str) -> list[str]:
    return [name for name in files.names(place) if name.endswith(".parquet")]
