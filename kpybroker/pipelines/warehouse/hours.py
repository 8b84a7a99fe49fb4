"""The files of one hour, replaced as a whole: what compaction and a replay do.

New rows are written to a hidden directory first, then a plan that says which batches they replace. From then on the
change is certain: the next run that finds the plan carries it out, however often it was begun. It moves the old batches
away, and then the new rows to the name of the newest of them. In between, which is the time of two renames, a reader
does not see the rows of that hour; it never sees a row twice.

Only batches that the stream has committed are replaced. It never writes those again, so it may run at the same time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from kpybroker.pipelines.sinks.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HIDDEN = ".replacing"
PLAN, ROWS, OLD = "plan.json", "rows", "old"
FILE_BYTES = 128 * 1024 * 1024
BATCH = "batch="


@dataclass(frozen=True, slots=True)
class Hour:
    """A directory of one hour, and its batches that are committed."""

    start: datetime
    place: str
    batches: tuple[int, ...]

    @property
    def paths(self) -> list[str]:
        """Of the batches."""
        return [f"{self.place}/{BATCH}{number}" for number in self.batches]


def folder(start: datetime) -> str:
    """The directory of an hour under that of the result."""
    return f"date={start.date().isoformat()}/hour={start.hour}"


def found(files: Files, place: str, committed: int) -> Iterator[Hour]:
    """The hours that have files of batches up to `committed`, in order."""
    for day in _values(files, place, "date="):
        for hour in sorted(map(int, _values(files, f"{place}/date={day}", "hour="))):
            start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + timedelta(hours=hour)
            where = f"{place}/{folder(start)}"
            batches = tuple(sorted(one for one in map(int, _values(files, where, BATCH)) if one <= committed))
            if batches:
                yield Hour(start, where, batches)


def _values(files: Files, place: str, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in files.names(place) if name.startswith(prefix)]


def replace(files: Files, place: str, hour: Hour, rows: DataFrame, size: int) -> None:
    """Replace the batches of an hour by `rows`, of about `size` bytes; `place` is the directory of the result."""
    staged = f"{place}/{HIDDEN}/{folder(hour.start)}"
    files.remove(staged)
    parts = max(1, -(-size // FILE_BYTES))
    rows.repartition(parts).sortWithinPartitions("event_time").write.parquet(f"{staged}/{ROWS}")
    files.write(f"{staged}/{PLAN}", json.dumps({"hour": hour.place, "batches": hour.batches}))
    _carry_out(files, staged)


def recover(files: Files, place: str) -> int:
    """Carry out the plans that are there, and remove what has none; how many plans there were."""
    hidden, done = f"{place}/{HIDDEN}", 0
    for day in files.names(hidden):
        for hour in files.names(f"{hidden}/{day}"):
            staged = f"{hidden}/{day}/{hour}"
            if files.exists(f"{staged}/{PLAN}"):
                _carry_out(files, staged)
                done += 1
    files.remove(hidden)
    return done


def _carry_out(files: Files, staged: str) -> None:
    plan = json.loads(files.read(f"{staged}/{PLAN}"))
    hour, batches = plan["hour"], plan["batches"]
    if files.exists(f"{staged}/{ROWS}"):  # else the new rows are in their place already
        _move_all(files, hour, f"{staged}/{OLD}", batches)
        files.move(f"{staged}/{ROWS}", f"{hour}/{BATCH}{max(batches)}")
    files.remove(staged)


def _move_all(files: Files, hour: str, target: str, batches: Sequence[int]) -> None:
    for number in batches:
        if files.exists(f"{hour}/{BATCH}{number}"):
            files.move(f"{hour}/{BATCH}{number}", f"{target}/{BATCH}{number}")
