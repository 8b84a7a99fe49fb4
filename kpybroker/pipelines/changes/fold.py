"""A batch into the tables: what was read, the events of it that are due, the next version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from kpybroker.pipelines.changes import avro
from kpybroker.pipelines.changes.events import END, events
from kpybroker.pipelines.changes.merge import Merged, Summary, merged, summaries
from kpybroker.pipelines.changes.points import Point, highest, is_before, placed, point
from kpybroker.pipelines.changes.versions import BUCKET, FOLDER, Table, Version, Versions, folder_of
from kpybroker.pipelines.runtime.outputs import dead_letters
from kpybroker.pipelines.runtime.pipeline import DEAD_LETTERS, REASON, Batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVERYTHING = Point(None, 0, True, ())


@dataclass(slots=True)
class Fold:
    """`Query.fold`. What a batch has in memory for its results is released with the next one."""

    registry: avro.Registry | None
    transactions: bool
    buckets: int
    keep: int
    _held: list[DataFrame] = field(default_factory=list)

    def __call__(self, batch: Batch) -> Mapping[str, DataFrame]:
        """The results of a batch. Its version is written, unless it is there: then the batch is done again."""
        for frame in self._held:
            frame.unpersist()
        self._held.clear()
        (directory,) = batch.directories
        versions = Versions(batch.rows.sparkSession, f"{directory}/{FOLDER}")
        rows, broken = batch.rows, None
        if self.registry is not None:
            decoded = self._hold(avro.decoded(rows, self.registry))
            rows, broken = decoded.where(decoded[REASON].isNull()).drop(REASON), dead_letters(decoded)
        base = versions.before(batch.number)
        new = self._hold(placed(events(rows), base.positions))
        waiting = versions.waiting(base, new.schema)
        pool = new if waiting is None else new.unionByName(waiting)
        found = point(pool, base) if self.transactions else EVERYTHING
        due = self._due(found)
        ready = self._hold(pool.where(due))
        summed = summaries(ready)
        tables = [self._merged(versions, base, ready, one) for one in summed.values()]
        if batch.number not in versions.numbers():
            next_one = Version(batch.number, found.transaction, found.lsn, found.snapshot, base.tables)
            next_one = replace(next_one, positions=highest(new, base), changes=_counts(summed), ends=found.ends)
            _write(versions, next_one, tables, pool.where(~due & (pool["op"] != END)))
            versions.clean(self.keep)
        results = {"rows": reduce(lambda one, other: one.union(other), (one.rows for one in tables))} if tables else {}
        return results if broken is None else {**results, DEAD_LETTERS: broken}

    def _hold(self, frame: DataFrame) -> DataFrame:
        self._held.append(frame.persist())
        return self._held[-1]

    def _due(self, found: Point) -> Column:
        from pyspark.sql import functions as F

        return is_before(found) if self.transactions else F.col("op") != END

    def _merged(self, versions: Versions, base: Version, ready: DataFrame, summary: Summary) -> Merged:
        from pyspark.sql import functions as F

        here = ready.where(F.col("table") == summary.table)
        before = base.tables.get(summary.table, Table())
        return merged(versions, before, here, summary, self.buckets, self._hold)


def _counts(found: Mapping[str, Summary]) -> dict[str, dict[str, int]]:
    """Events by table and op."""
    return {table: dict(one.counts) for table, one in found.items()}


def _write(versions: Versions, version: Version, tables: list[Merged], waiting: DataFrame) -> None:
    """The files of a version, then the version."""
    count = waiting.count()
    if count:
        waiting.write.mode("overwrite").parquet(versions.pending_folder(version.number))
    found = dict(version.tables)
    for one in tables:
        rows = {str(row[BUCKET]): row["count"] for row in one.frame.groupBy(BUCKET).count().collect()}
        folder = f"{folder_of(one.name)}/version={version.number}"
        if rows:
            frame = one.frame.repartition(BUCKET)
            frame.write.mode("overwrite").partitionBy(BUCKET).parquet(f"{versions.place}/{folder}")
        before = found.get(one.name, Table())
        buckets = {**one.untouched, **{bucket: f"{folder}/{BUCKET}={bucket}" for bucket in rows}}
        untouched = {bucket: before.rows[bucket] for bucket in one.untouched}
        found[one.name] = Table(one.columns, buckets, {**untouched, **rows})
    versions.save(replace(version, tables=found, pending=count))
