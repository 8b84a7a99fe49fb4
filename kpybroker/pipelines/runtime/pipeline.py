"""`Pipeline`: what one pipeline is made of. `runtime.run` does the rest: reading, starting, stopping, writing.

A pipeline turns records into rows (`parse`), rows into streams of results (`queries`), and each batch of a stream into
the rows of one or more results. The same functions are used on a stream and on a bounded set.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Own = TypeVar("Own")
DEAD_LETTERS = "dead_letters"
REASON = "reason"
"""The column of `Pipeline.parse` that says why a record is broken; null where it is not."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a stream. A number that was there before means the same rows again, after a crash."""

    rows: DataFrame
    number: int
    directories: Sequence[str]
    """Those of `--output`."""


@dataclass(frozen=True, slots=True)
class Query:
    """One stream; `results` makes of a batch the rows of each result, or `fold` does, which keeps files of its own.

    `name` is that of its directory in the checkpoint. `mode` is Spark's: `append` for rows that are final, `update` for
    the new values of keys.
    """

    name: str
    frame: DataFrame
    results: Callable[[DataFrame], Mapping[str, DataFrame]] = field(default=lambda _rows: {})
    mode: Literal["append", "update"] = "append"
    fold: Callable[[Batch], Mapping[str, DataFrame]] | None = None


@dataclass(frozen=True, slots=True)
class ByHour:
    """Files of a result in a directory for each hour of its column `time`, in each file sorted by `order`."""

    time: str
    order: tuple[str, ...]


class Pipeline(ABC, Generic[Own]):
    """`Own` are the options that this pipeline has beyond those of all."""

    name: ClassVar[str]
    summary: ClassVar[str]
    keys: ClassVar[Mapping[str, str]]
    """Result -> the column that is the key of its records."""
    values: ClassVar[Mapping[str, str]] = {}
    """Result -> the column that is the value of its records, null for a delete; without one, the row is, as JSON."""
    folders: ClassVar[Sequence[str]] = ()
    """What it keeps in a directory of `--output` besides its results."""
    compacted: ClassVar[frozenset[str]] = frozenset()
    """Results of which the last record of each key counts: their topics are made compacted, where there are none."""
    source: ClassVar[Mapping[str, str]] = {}
    """Options of Spark's Kafka source that this pipeline needs."""
    by_hour: ClassVar[Mapping[str, ByHour]] = {}
    """Results whose files are by hour, and not only by batch."""
    tables: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Results that may be tables -> the columns of the primary key: the identity of a row, in whatever batch it is."""

    @property
    def results(self) -> tuple[str, ...]:
        """All results, the last one the broken records."""
        return (*self.keys, DEAD_LETTERS)

    @abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Its own options."""

    @abstractmethod
    def own(self, values: Mapping[str, Any]) -> Own:
        """Its own options from what argparse has found."""

    def contradictions(self, own: Own) -> Sequence[tuple[str, str]]:
        """(cause, fix) of options that do not fit together."""
        return ()

    @abstractmethod
    def kept(self, own: Own) -> Mapping[str, object]:
        """The options that state in a checkpoint depends on, by their names on the command line without dashes."""

    @abstractmethod
    def parse(self, records: DataFrame, own: Own) -> DataFrame:
        """A row for each record: `topic`, `partition`, `offset`, `heartbeat`, `reason`, and columns of its own.

        `records` has the columns of Spark's Kafka source. A row that is a heartbeat has no reason.
        """

    def rows(self, records: DataFrame, own: Own) -> DataFrame:
        """The rows of `parse`, each computed once.

        Spark moves filters and columns down to the source, and computes what they are made of for each of them again,
        which was four fifths of the work of a batch of `activity`. It moves nothing below an `inline`.
        """
        from pyspark.sql import functions as F

        parsed = self.parse(records, own).select(F.struct("*").alias("row"))
        return parsed.select(F.inline(F.array("row")))

    @abstractmethod
    def queries(self, rows: DataFrame, own: Own) -> Sequence[Query]:
        """The streams over the rows of `parse` that are not broken, heartbeats included."""
