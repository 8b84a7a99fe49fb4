"""A shop in PostgreSQL that transactions change, and what its tables are after each, asked of the source itself.

The same seed makes the same statements. Customers are changed unevenly, and have a long text, which PostgreSQL keeps
apart: an update that does not change it does not log it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

TABLES = ("public.customers", "public.orders")
OPERATIONS_MAX = 6
SNAPSHOT = 0
"""The transaction before all others in `Workload.history`."""
CREATE = (
    "create table customers (id int primary key, name text, points int not null, profile text); "
    "create table orders (id int primary key, customer int not null, note text, amount numeric(10,2) not null, "
    "paid boolean not null default false, day date)"
)
ADD_COLUMN = "alter table orders add column gift boolean not null default true"
DROP_COLUMN = "alter table orders drop column note"
WIDEN_COLUMN = "alter table customers alter column points type bigint"
TRUNCATE = "truncate customers"
PROFILE = "(select string_agg(md5(random()::text), '') from generate_series(1, 120))"
Rows = dict[int, dict[str, Any]]


@dataclass(slots=True)
class Workload:
    """`execute` runs SQL and returns rows of texts. `history` has the tables by transaction."""

    execute: Callable[[str], list[list[str]]]
    seed: int
    history: dict[int, dict[str, Rows]] = field(default_factory=dict)
    last: int = SNAPSHOT
    _dice: random.Random = field(init=False)
    _next: int = 0
    _noted: bool = True

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def create(self, rows: int) -> None:
        """The tables, with `rows` rows each."""
        inserts = [self._insert(table) for _ in range(rows) for table in TABLES]
        found = self.execute(";".join([CREATE, *inserts]) + ";" + _look())
        self._note(["tx", str(SNAPSHOT)], found)

    def transact(self, count: int, *more: str) -> None:
        """`count` transactions; `more` are statements in the last one of them, such as `TRUNCATE`."""
        ids = {table: sorted(rows) for table, rows in self.history[self.last].items()}
        for number in range(count):
            steps = [self._step(ids) for _ in range(self._dice.randint(1, OPERATIONS_MAX))]
            steps += [*more, self._insert(TABLES[0])] if number == count - 1 and more else []
            statements = ["begin", *steps, "select 'tx', txid_current()", "commit"]
            found = self.execute(";".join(statements) + ";" + _look())
            self._note(found[0], found[1:])
            ids = {table: sorted(rows) for table, rows in self.history[self.last].items()}

    def alter(self, statement: str) -> None:
        """Change the columns of a table."""
        self.execute(statement)
        self._noted = "drop column note" not in statement and self._noted

    def _note(self, tx: list[str], found: list[list[str]]) -> None:
        self.last = int(tx[1])
        tables: dict[str, Rows] = {table: {} for table in TABLES}
        for table, text in found:
            row = json.loads(text, parse_float=Decimal)
            tables[table][row["id"]] = row
        self.history[self.last] = tables

    def _step(self, ids: dict[str, list[int]]) -> str:
        table = self._dice.choice(TABLES)
        if not ids[table] or self._dice.random() < 0.35:
            return self._insert(table)
        known = ids[table]
        key = known[min(self._dice.randrange(len(known)), self._dice.randrange(len(known)))]
        chance = self._dice.random()
        if chance < 0.2:
            return f"delete from {table} where id = {key}"
        if chance < 0.3:
            return f"update {table} set id = {self._number()} where id = {key}"
        return f"update {table} set {self._change(table)} where id = {key}"

    def _change(self, table: str) -> str:
        if table == TABLES[0]:
            profile = f", profile = {PROFILE}" if self._dice.random() < 0.3 else ""
            return f"points = points + {self._dice.randrange(1, 100)}{profile}"
        note = f", note = {self._text()}" if self._noted else ""
        return f"paid = true, amount = {self._amount()}{note}"

    def _insert(self, table: str) -> str:
        number = self._number()
        if table == TABLES[0]:
            return f"insert into {table} (id, name, points, profile) values ({number}, {self._text()}, 0, {PROFILE})"
        columns, values = "id, customer, amount, day", f"{number}, {self._dice.randrange(1000)}, {self._amount()}"
        day = f"date '2024-01-01' + {self._dice.randrange(400)}"
        note = (", note", f", {self._text()}") if self._noted else ("", "")
        return f"insert into {table} ({columns}{note[0]}) values ({values}, {day}{note[1]})"

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _text(self) -> str:
        return self._dice.choice(["null", "''", "'soon'", "'Grüße, 注文'", "E'it''s\\tquoted \\\\ \"so\"'"])

    def _amount(self) -> str:
        return f"{self._dice.randint(-(10**6), 10**6) / 100:.2f}"


def _look() -> str:
    return ";".join(f"select '{table}', row_to_json(one) from {table} one" for table in TABLES)


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row that Spark has read as the source's JSON has it: days are texts there."""
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def differences(found: Rows, expected: Rows) -> Iterator[str]:
    """What is wrong, by key."""
    for key in sorted(found.keys() | expected.keys()):
        if found.get(key) != expected.get(key):
            yield f"{key}: {found.get(key)} instead of {expected.get(key)}"
