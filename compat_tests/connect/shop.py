"""A shop's table that random transactions change, and the change events that they must become, once and in order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Message

from compat_tests.support.machine.postgres import Postgres

TABLE = "orders"
OPERATIONS_MAX = 6
TOMBSTONE = "tombstone"


class Change(NamedTuple):
    """An event of the table's topic. `op` is Debezium's, or `tombstone` for the null after a delete."""

    op: str
    key: int
    row: dict[str, object] | None


class Shop:
    """The table; `changes` is what its topic must hold, `transactions` the number of events of each streamed one."""

    def __init__(self, postgres: Postgres, seed: int) -> None:
        self.postgres = postgres
        self.rows: dict[int, dict[str, object]] = {}
        self.changes: list[Change] = []
        self.transactions: list[int] = []
        self._random = random.Random(seed)
        self._last = 0
        self._unpaid: bool | str = False
        self._paid: bool | str = True

    def create(self, rows: int) -> None:
        """The table with some rows, which are a snapshot's."""
        columns = "id int primary key, note text, amount numeric(10,2) not null, paid boolean not null"
        self.postgres.execute(f"create table {TABLE} ({columns})")
        self.postgres.execute(";".join(self._insert() for _ in range(rows)))
        self.changes = [Change("r", change.key, change.row) for change in self.changes]

    def transact(self, count: int) -> None:
        """`count` transactions, each of some inserts, updates and deletes."""
        statements = []
        for _ in range(count):
            before = len(self.changes)
            inside = [self._operation() for _ in range(self._random.randint(1, OPERATIONS_MAX))]
            statements += ["begin", *inside, "commit"]
            new = self.changes[before:]
            self.transactions.append(sum(change.op != TOMBSTONE for change in new))
        self.postgres.execute(";".join(statements))

    def roll_back(self) -> None:
        """A transaction that must leave no trace."""
        self.postgres.execute(f"begin; insert into {TABLE} (id, amount, paid) values (-1, 0, false); rollback")

    def add_column(self) -> None:
        """The rows that are there have its default."""
        self.postgres.execute(f"alter table {TABLE} add column gift boolean not null default false")
        for row in self.rows.values():
            row["gift"] = False

    def drop_column(self) -> None:
        self.postgres.execute(f"alter table {TABLE} drop column gift")
        for row in self.rows.values():
            del row["gift"]

    def make_paid_a_text(self) -> None:
        """`false` becomes 'false'."""
        self.postgres.execute(f"alter table {TABLE} alter column paid type text using paid::text")
        self._unpaid, self._paid = "false", "true"
        for row in self.rows.values():
            row["paid"] = str(row["paid"]).lower()

    def _operation(self) -> str:
        if not self.rows or self._random.random() < 0.4:
            return self._insert()
        key = self._random.choice(list(self.rows))
        return self._delete(key) if self._random.random() < 0.3 else self._update(key)

    def _insert(self) -> str:
        self._last += 1
        others = next(iter(self.rows.values()), {})
        row: dict[str, object] = {
            "id": self._last,
            "note": self._note(),
            "amount": self._amount(),
            "paid": self._unpaid,
        }
        self.rows[self._last] = row | ({"gift": True} if "gift" in others else {})
        self._changed("c", self._last)
        names = ", ".join(self.rows[self._last])
        return f"insert into {TABLE} ({names}) values ({', '.join(map(_literal, self.rows[self._last].values()))})"

    def _update(self, key: int) -> str:
        new = {"note": self._note(), "amount": self._amount(), "paid": self._paid}
        self.rows[key] = self.rows[key] | new
        self._changed("u", key)
        return f"update {TABLE} set {', '.join(f'{name} = {_literal(new[name])}' for name in new)} where id = {key}"

    def _delete(self, key: int) -> str:
        del self.rows[key]
        self.changes += [Change("d", key, None), Change(TOMBSTONE, key, None)]
        return f"delete from {TABLE} where id = {key}"

    def _changed(self, op: str, key: int) -> None:
        self.changes.append(Change(op, key, dict(self.rows[key])))

    def _note(self) -> str | None:
        return self._random.choice([None, "", "soon", "Grüße, 注文", 'it\'s\tquoted \\ "so"'])

    def _amount(self) -> str:
        """As numeric(10,2) writes it, which is how a connector with decimals as strings does."""
        return f"{self._random.randint(-(10**6), 10**6) / 100:.2f}"


def _literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()


def change_of(key: dict[str, object], value: dict[str, object] | None) -> Change:
    """An event from its decoded key and value."""
    number = key["id"]
    assert isinstance(number, int)
    if value is None:
        return Change(TOMBSTONE, number, None)
    after = value["after"]
    assert after is None or isinstance(after, dict)
    return Change(str(value["op"]), number, after)


def changes_of(messages: Iterable[Message]) -> list[Change]:
    """Events in JSON without schemas."""
    return [change_of(json.loads(one.key()), one.value() and json.loads(one.value())) for one in messages]
