"""Versions of the tables in a directory. Each batch makes one; a reader sees a whole one, or the one before.

    versions/0000000007.json        what version 7 is: the highest number is current
    public.orders/version=5/_bucket=3/*.parquet
    pending/version=7/*.parquet     events of transactions that are not complete

A row is in the bucket of its key's hash. A version names the files of each bucket: those of an earlier version where
nothing has changed. Files do not change once a version names them. The version is written last, by a rename, so a batch
that was cut off has left files that no version names, which the same batch overwrites when it is done again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from kpybroker.pipelines.changes.columns import TableColumn
from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.sinks.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

KEY, COMMIT, LSN, BUCKET = "_key", "_commit", "_lsn", "_bucket"
FOLDER = "tables"


@dataclass(frozen=True, slots=True)
class Table:
    """`buckets` are folders below the tables' by bucket, `rows` their number of rows."""

    columns: tuple[TableColumn, ...] = ()
    buckets: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Version:
    """What the tables are at one checkpoint.

    `transaction` and `lsn` are those of the last transaction that is in them, if transactions are read. `positions`
    are the highest (commit, lsn) that was read, by topic and partition. `changes` counts the events that made this
    version of the one before, by table and op. `ends` are those of transactions that are not complete.
    """

    number: int = -1
    transaction: int | None = None
    lsn: int = 0
    snapshot: bool = False
    tables: Mapping[str, Table] = field(default_factory=dict)
    positions: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ends: tuple[tuple[int, int, Mapping[str, int]], ...] = ()
    pending: int = 0


class Versions:
    """The versions in the directory `place`."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark, self.place = spark, place.rstrip("/")
        self.files = Files(spark, self.place)

    def numbers(self) -> list[int]:
        """Those that are there, ascending."""
        names = self.files.names(f"{self.place}/versions")
        return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json"))

    def load(self, number: int) -> Version:
        """A version. Raises Spark's errors if it is not there."""
        raw = json.loads(self.files.read(self._file(number)))
        tables = {
            name: Table(tuple(TableColumn(**column) for column in one["columns"]), one["buckets"], one["rows"])
            for name, one in raw["tables"].items()
        }
        ends = tuple((tx, lsn, counts) for tx, lsn, counts in raw["ends"])
        return Version(**{**raw, "tables": tables, "ends": ends})

    def before(self, number: int) -> Version:
        """The highest below `number`; an empty one if there is none."""
        found = [one for one in self.numbers() if one < number]
        return self.load(found[-1]) if found else Version()

    def save(self, version: Version) -> None:
        """Make it the current one."""
        self.files.write(self._file(version.number), json.dumps(asdict(version)))

    def clean(self, keep: int) -> None:
        """Remove all but the newest `keep` versions, and the files that only those named."""
        numbers = self.numbers()
        old, kept = numbers[:-keep], [self.load(one) for one in numbers[-keep:]]
        named = {bucket for one in kept for table in one.tables.values() for bucket in table.buckets.values()}
        for number in old:
            version = self.load(number)
            gone = {bucket for table in version.tables.values() for bucket in table.buckets.values()} - named
            # the version first: what is named must be there
            for path in (self._file(number), self.pending_folder(number), *(f"{self.place}/{one}" for one in gone)):
                self.files.remove(path)

    def pending_folder(self, number: int) -> str:
        """Where the events are that wait for the rest of their transactions."""
        return f"{self.place}/pending/version={number}"

    def waiting(self, version: Version, schema: StructType) -> DataFrame | None:
        """The events that wait in a version; None if there are none."""
        if version.pending == 0:
            return None
        return self.spark.read.schema(schema).parquet(self.pending_folder(version.number))

    def rows(self, table: Table, buckets: Mapping[str, str] | None = None) -> DataFrame | None:
        """The rows of some buckets (default: of all), with `_key`, `_commit`, `_lsn`; None if there are none."""
        chosen = table.buckets if buckets is None else buckets
        if not chosen:
            return None
        schema = ", ".join([f"{KEY} string, {COMMIT} bigint, {LSN} bigint", *_schema(table)])
        return self.spark.read.schema(schema).parquet(*(f"{self.place}/{one}" for one in chosen.values()))

    def _file(self, number: int) -> str:
        return f"{self.place}/versions/{number:010d}.json"


def folder_of(table: str) -> str:
    """A table's folder: its name, with what a path cannot have written as in a URL."""
    return quote(table, safe="")


def _schema(table: Table) -> list[str]:
    return [f"`{column.name.replace('`', '``')}` {column.type}" for column in table.columns]


def read_table(spark: SparkSession, directory: str, table: str, number: int | None = None) -> DataFrame:
    """A table (`public.orders`) in the output `directory` as of its current version, or of another that is kept.

    Raises `PipelineError` if there is none.
    """
    versions = Versions(spark, f"{directory.rstrip('/')}/{FOLDER}")
    numbers = versions.numbers()
    wanted = number if number is not None else numbers[-1] if numbers else None
    version = versions.load(wanted) if wanted in numbers and wanted is not None else Version()
    if table not in version.tables:
        known = ", ".join(sorted(version.tables)) or "none"
        raise PipelineError(f"{directory} has no table {table}, only: {known}.", "Correct it, or run the pipeline.", 2)
    found = version.tables[table]
    rows = versions.rows(found)
    return rows.drop(KEY, COMMIT, LSN) if rows is not None else spark.createDataFrame([], ", ".join(_schema(found)))
