"""Batches of rows in a table of PostgreSQL, each row once, whatever is killed.

A row has an identity: the columns that `Pipeline.tables` names, which are the table's primary key. A few writers insert
the rows of a batch, each in a transaction of its own, and a row that is there already is replaced. So a batch that is
repeated, in whole or in part, changes nothing. A reader may see the rows of some writers before those of others.

The password comes from where libpq takes it, PGPASSWORD or a password file, and is not in the address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kpybroker.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

SCHEME = "postgresql://"
WRITERS = 4
CONNECT_S = 10
STAGED = "kpybroker_rows"
"""The temporary table that a transaction inserts from."""
TYPES = {
    "string": "text",
    "bigint": "bigint",
    "int": "integer",
    "double": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamptz",
    "date": "date",
    "binary": "bytea",
    "decimal": "numeric",
}
"""Spark's type -> PostgreSQL's."""
NUL, REPLACEMENT = "\0", "\ufffd"
"""A text of PostgreSQL has no NUL."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table and its primary key; `address` is that of the database, as libpq writes it."""

    address: str
    name: str
    key: Sequence[str]


def check_address(address: str) -> str | None:
    """What is wrong with an address; None if nothing is."""
    try:
        parts = urlsplit(address)
        has_name, has_password = bool(parts.hostname and parts.path.strip("/")), parts.password is not None
        _ = parts.port
    except ValueError as error:
        return str(error)
    if has_password or "password=" in parts.query:
        return "a password is seen by all users of the machine: set PGPASSWORD, or use a password file"
    return None if has_name else "it is not postgresql://USER@HOST:PORT/DATABASE"


def connect(address: str) -> Connection[Any]:
    """A connection, in UTC. Raises `PipelineError`."""
    try:
        import psycopg
    except ImportError:
        raise PipelineError("Tables need psycopg.", "pip install 'kpybroker[postgresql]'") from None
    try:
        return psycopg.connect(address, connect_timeout=CONNECT_S, options="-c timezone=UTC")
    except psycopg.OperationalError as error:
        said = str(error).strip().splitlines() or ["no reason is given"]
        raise PipelineError(
            f"PostgreSQL at {shown(address)} cannot be used: {said[0].strip()}.",
            "Start it, or correct --output, PGPASSWORD or the password file; the same checkpoint continues.",
        ) from None


def shown(address: str) -> str:
    """The address without what could be secret."""
    parts = urlsplit(address)
    return f"{parts.hostname}:{parts.port or 5432}{parts.path}"


def prepare(table: Table, schema: StructType) -> None:
    """Create the table, or see that it has these columns. Raises `PipelineError`."""
    import psycopg

    try:
        found = _made(table, columns := _columns(schema))
    except psycopg.Error as error:
        raise PipelineError(
            f"PostgreSQL refuses the table {table.name}: {str(error).splitlines()[0]}.",
            "Give this user the right to create it, or create it.",
        ) from None
    wrong = [f"{name} {kind}" for name, kind in columns.items() if found.get(name) != kind]
    if wrong:
        raise PipelineError(
            f"The table {table.name} of {shown(table.address)} has no columns {', '.join(wrong)}.",
            "Add them, or name another database in --output.",
        )


def _made(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of the table, which is created if there is none. Raises psycopg's errors."""
    from psycopg import sql

    with connect(table.address) as connection:
        parts = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in columns.items()]
        key = sql.SQL(", ").join(map(sql.Identifier, table.key))
        parts.append(sql.SQL("primary key ({})").format(key))
        statement = sql.SQL("create table if not exists {} ({})")
        connection.execute(statement.format(sql.Identifier(table.name), sql.SQL(", ").join(parts)))
        query = "select attname, format_type(atttypid, null) from pg_attribute where attrelid = %s::regclass"
        rows = connection.execute(f"{query} and attnum > 0 and not attisdropped", [f'"{table.name}"']).fetchall()
    return {name: kind.replace("timestamp with time zone", "timestamptz") for name, kind in rows}


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: TYPES[field.dataType.simpleString().split("(")[0]] for field in schema.fields}


def write(frame: DataFrame, table: Table) -> None:
    """Insert or replace rows; all columns of the frame are in the table."""
    rows = frame.repartition(WRITERS, *table.key)
    rows.foreachPartition(partial(write_rows, table, frame.columns))


def write_rows(table: Table, columns: Sequence[str], rows: Iterator[Row]) -> None:
    """One writer's part, in a process of Spark's. Raises `PipelineError` and psycopg's errors."""
    first = next(rows, None)
    if first is None:
        return
    with connect(table.address) as connection:
        put(connection, table, columns, _chained(first, rows))


def _chained(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def put(connection: Connection[Any], table: Table, columns: Sequence[str], rows: Iterator[Row]) -> None:
    """Rows into the table by way of a temporary one, in the transaction of the connection."""
    from psycopg import sql

    staged, name = sql.Identifier(STAGED), sql.Identifier(table.name)
    like = sql.SQL("create temporary table {} (like {}) on commit drop")
    connection.execute(like.format(staged, name))
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    with connection.cursor().copy(sql.SQL("copy {} ({}) from stdin").format(staged, listed)) as copy:
        for row in rows:
            copy.write_row([plain(value) for value in row])
    connection.execute(_merge(table, staged, name, columns))


def plain(value: Any) -> Any:
    """The value as psycopg and PostgreSQL take it."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC)  # Spark gives it in the zone of the machine, and does not say so
    return value.replace(NUL, REPLACEMENT) if isinstance(value, str) else value


def _merge(table: Table, staged: Any, name: Any, columns: Sequence[str]) -> Composed:
    from psycopg import sql

    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    key = sql.SQL(", ").join(map(sql.Identifier, table.key))
    others = [column for column in columns if column not in table.key]
    new = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in others]
    action = sql.SQL("update set {}").format(sql.SQL(", ").join(new)) if new else sql.SQL("nothing")
    text = "insert into {name} ({columns}) select {columns} from {staged} on conflict ({key}) do {action}"
    return sql.SQL(text).format(name=name, columns=listed, staged=staged, key=key, action=action)
