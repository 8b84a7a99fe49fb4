"""Which of the events that were read may be in the tables: those up to a point at which the database was.

Events of a partition are in the order of commits. Each has a position, the pair of the commit before its own and its
own place in the log. One below the highest of its partition was there before: the source was started again and has
repeated it. Rows of a snapshot have no position; theirs is the highest before them.

Without ends of transactions every event may be in the tables at once. With them the point is the end of the last
transaction of which, and of all before it, as many events were read as its end says, for each table. What is after it
waits, and so does a snapshot until its last row was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpybroker.pipelines.changes.events import END
from kpybroker.pipelines.changes.versions import Version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

POSITION = "position"
"""struct<commit, lsn, offset>: events of one key, and those of one partition, are in this order."""
LAST_OF_TABLE = ("last_in_data_collection", "last")
End = tuple[int, int, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Point:
    """Up to where the events of a batch are complete; `ends` are those of transactions that are not."""

    transaction: int | None
    lsn: int
    snapshot: bool
    ends: tuple[End, ...]


def placed(events: DataFrame, positions: Mapping[str, Mapping[str, tuple[int, int]]]) -> DataFrame:
    """Events with their position, without those that were there before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    is_streamed = ~F.col("op").isin("r", END)
    own = F.when(is_streamed, _pair(F.coalesce("commit", F.lit(0)), F.col("lsn")))
    window = Window.partitionBy("topic", "partition").orderBy("offset")
    highest = F.greatest(F.max(own).over(window), _known(positions))
    found = events.withColumn("highest", highest)
    new = found.where(~is_streamed | (own >= F.col("highest")))
    parts = [F.coalesce(F.col(f"highest.{name}"), F.lit(0)).alias(name) for name in ("commit", "lsn")]
    return new.withColumn(POSITION, F.struct(*parts, F.col("offset").alias("offset"))).drop("highest")


def _pair(commit: Column, lsn: Column) -> Column:
    from pyspark.sql import functions as F

    return F.struct(commit.cast("bigint").alias("commit"), lsn.cast("bigint").alias("lsn"))


def _known(positions: Mapping[str, Mapping[str, tuple[int, int]]]) -> Column:
    from pyspark.sql import functions as F

    known = F.lit(None).cast("struct<commit:bigint,lsn:bigint>")
    for topic, partitions in positions.items():
        for partition, (commit, lsn) in partitions.items():
            here = (F.col("topic") == topic) & (F.col("partition") == int(partition))
            known = F.when(here, _pair(F.lit(commit), F.lit(lsn))).otherwise(known)
    return known


def highest(events: DataFrame, base: Version) -> dict[str, dict[str, tuple[int, int]]]:
    """The positions after these events."""
    from pyspark.sql import functions as F

    found = {topic: {part: (at[0], at[1]) for part, at in parts.items()} for topic, parts in base.positions.items()}
    rows = events.where(F.col("op") != END).groupBy("topic", "partition").agg(F.max(POSITION).alias(POSITION))
    for row in rows.collect():
        found.setdefault(row.topic, {})[str(row.partition)] = (row.position.commit, row.position.lsn)
    return found


def point(pool: DataFrame, base: Version) -> Point:
    """The last point that all before it leads to. `pool` are the events that wait and the new ones."""
    from pyspark.sql import functions as F

    ends = _ends(pool, base)
    is_streamed = ~F.col("op").isin("r", END)
    # an event that was written twice counts once
    each = F.countDistinct("lsn", F.coalesce("key", F.lit("")), "op").alias("events")
    read = {
        (row.tx, row.table): row.events for row in pool.where(is_streamed).groupBy("tx", "table").agg(each).collect()
    }
    transaction, lsn = base.transaction, base.lsn
    complete = 0
    for tx, at, counts in ends:
        if any(read.get((tx, table), 0) < count for table, count in counts.items()):
            break
        transaction, lsn, complete = tx, at, complete + 1
    snapshot = base.snapshot or complete > 0 or _snapshot_is_whole(pool)
    return Point(transaction, lsn, snapshot, tuple(ends[complete:]))


def _ends(pool: DataFrame, base: Version) -> list[End]:
    """By transaction, in the order of commits; of one that was written twice the larger counts."""
    from pyspark.sql import functions as F

    new = [
        (row.tx, row.lsn, row.counts) for row in pool.where(F.col("op") == END).select("tx", "lsn", "counts").collect()
    ]
    found: dict[tuple[int, int], dict[str, int]] = {}
    for tx, lsn, counts in (*base.ends, *new):
        if lsn > base.lsn:
            before = found.setdefault((lsn, tx), {})
            before |= {table: max(count, before.get(table, 0)) for table, count in counts.items()}
    return [(tx, lsn, counts) for (lsn, tx), counts in sorted(found.items())]


def _snapshot_is_whole(pool: DataFrame) -> bool:
    """Whether the snapshot's last row was read, and the last one of each table of which there is any."""
    from pyspark.sql import functions as F

    marks = F.collect_set("snapshot").alias("marks")
    found: Iterable[set[str]] = [set(row.marks) for row in pool.where("op = 'r'").groupBy("table").agg(marks).collect()]
    return any("last" in one for one in found) and all(one & set(LAST_OF_TABLE) for one in found)


def is_before(found: Point) -> Column:
    """Whether an event is not after the point."""
    from pyspark.sql import functions as F

    before = F.col(f"{POSITION}.commit") < found.lsn
    snapshot = F.lit(found.snapshot) & (F.col("op") == "r") & (F.col(f"{POSITION}.commit") == 0)
    return (F.col("op") != END) & (before | snapshot)
