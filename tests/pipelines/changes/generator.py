"""Change data as Debezium for PostgreSQL writes it, without a database: a shop of two tables that a seed changes.

The same seed makes the same records. `Shop.history` has the tables after each transaction, so that a test has something
to compare with. Customers are changed unevenly; a transaction may touch both tables, change primary keys, and truncate.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from kpybroker.pipelines.changes.columns import DECIMAL, UNAVAILABLE

PREFIX, TRANSACTIONS = "shop", "shop.transaction"
ORDERS, CUSTOMERS = "public.orders", "public.customers"
OPERATIONS_MAX = 5
LONG = 3000
Row = dict[str, Any]
Field = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """One record; the value of a tombstone is None."""

    topic: str
    key: bytes | None
    value: bytes | None


def topic_of(table: str) -> str:
    """The topic of a table's changes."""
    return f"{PREFIX}.{table}"


def _fields(table: str) -> list[Field]:
    number = {"type": "int32", "optional": False, "field": "id"}
    text = {"type": "string", "optional": True, "field": "note"}
    if table == CUSTOMERS:
        return [number, {**text, "field": "name"}, {**text, "field": "profile"}]
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    amount = {"type": "bytes", "optional": False, "name": DECIMAL, "parameters": parameters, "field": "amount"}
    day = {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "field": "day"}
    return [number, {**number, "field": "customer"}, text, amount, day]


@dataclass(slots=True)
class Shop:
    """The source. `schemas` are in the records as with `schemas.enable`; without them decimals are texts."""

    seed: int
    schemas: bool = True
    fields: dict[str, list[Field]] = field(init=False)
    tables: dict[str, dict[int, Row]] = field(init=False)
    history: dict[int, dict[str, dict[int, Row]]] = field(default_factory=dict)
    lsn: int = 1_000_000
    tx: int = 700
    _commit: int | None = None
    _dice: random.Random = field(init=False)
    _next: int = 1

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self.fields = {table: _fields(table) for table in (ORDERS, CUSTOMERS)}
        self.tables = {table: {} for table in self.fields}

    def snapshot(self, rows: int) -> Iterator[Record]:
        """Rows that are there before the source starts, `rows` of each table."""
        last = list(self.fields)[-1]
        for table in self.fields:
            for number in range(rows):
                row = self._new_row(table)
                self.tables[table][row["id"]] = row
                mark = "true" if number < rows - 1 else "last" if table == last else "last_in_data_collection"
                yield self._change("r", table, row["id"], row, mark)
        self._remember()

    def transaction(self, truncate: str | None = None) -> Iterator[Record]:
        """Some changes, and the records of begin and end; with `truncate` that table is emptied in between."""
        self.tx += 1
        yield self._boundary("BEGIN", {})
        counts: dict[str, int] = {}
        steps = self._dice.randint(1, OPERATIONS_MAX)
        for step in range(steps):
            for table, record in self._truncate(truncate) if truncate and step == steps // 2 else self._step():
                counts[table] = counts.get(table, 0) + (record.value is not None)
                yield record
        self.lsn += 40
        yield self._boundary("END", counts)
        self._commit = self.lsn
        self._remember()

    def add_column(self, default: object) -> None:
        """`orders` gets `gift`, of which the rows that are there have the default."""
        added = {"type": "boolean", "optional": False, "default": default, "field": "gift"}
        self.fields[ORDERS].append(added)
        for row in self.tables[ORDERS].values():
            row["gift"] = default if self.schemas else None

    def drop_column(self) -> None:
        """`orders` loses `note`."""
        self.fields[ORDERS] = [one for one in self.fields[ORDERS] if one["field"] != "note"]
        for row in self.tables[ORDERS].values():
            del row["note"]

    def widen_column(self) -> None:
        """``orders.customer`` becomes a bigint."""
        for one in self.fields[ORDERS]:
            if one["field"] == "customer":
                one["type"] = "int64"

    def _remember(self) -> None:
        self.history[self.tx] = {
            name: {key: dict(row) for key, row in rows.items()} for name, rows in self.tables.items()
        }

    def _step(self) -> Iterator[tuple[str, Record]]:
        table = self._dice.choice((ORDERS, ORDERS, CUSTOMERS))
        rows, chance = self.tables[table], self._dice.random()
        if not rows or chance < 0.3:
            row = self._new_row(table)
            rows[row["id"]] = row
            yield table, self._change("c", table, row["id"], row)
            return
        keys = sorted(rows)
        key = keys[min(self._dice.randrange(len(keys)), self._dice.randrange(len(keys)))]
        if chance < 0.45:
            del rows[key]
            yield from self._deleted(table, key)
        elif chance < 0.55:
            row = {**rows.pop(key), "id": self._number()}
            rows[row["id"]] = row
            place = self.lsn
            yield from self._deleted(table, key)
            self.lsn = place  # both have one place in the log
            # a long value that is not changed is not in the event, here too
            left_out = {"profile": UNAVAILABLE} if table == CUSTOMERS else {}
            yield table, self._change("c", table, row["id"], {**row, **left_out})
        else:
            before, left_out = rows[key], dict[str, str]()
            rows[key] = {**self._new_row(table), "id": key}
            if table == CUSTOMERS and self._dice.random() < 0.5:
                # a long value that an update does not change is not in the event
                rows[key]["profile"], left_out = before["profile"], {"profile": UNAVAILABLE}
            yield table, self._change("u", table, key, {**rows[key], **left_out})

    def _deleted(self, table: str, key: int) -> Iterator[tuple[str, Record]]:
        yield table, self._change("d", table, key, None)
        yield table, Record(topic_of(table), self._key(table, key), None)

    def _truncate(self, table: str) -> Iterator[tuple[str, Record]]:
        self.tables[table].clear()
        event = self._change("t", table, 0, None)
        yield table, Record(event.topic, None, event.value)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _new_row(self, table: str) -> Row:
        values: dict[str, Any] = {
            "id": self._number(),
            "customer": self._dice.randrange(1, 2**31),
            "note": self._dice.choice([None, "", "soon", 'Grüße, 注文 "so"', "\\t\n"]),
            "amount": Decimal(self._dice.randint(-(10**6), 10**6)) / 100,
            "day": self._dice.choice([None, self._dice.randrange(20_000)]),
            "name": f"name {self._dice.randrange(10**6)}",
            "profile": f"{self._dice.randrange(10**9)} " * (LONG // 10),
            "gift": self._dice.random() < 0.5,
        }
        return {one["field"]: values[one["field"]] for one in self.fields[table]}

    def _source(self, table: str, snapshot: str) -> Row:
        schema, _, name = table.partition(".")
        sequence = json.dumps([None if self._commit is None else str(self._commit), str(self.lsn)])
        place = {"lsn": self.lsn, "txId": self.tx, "sequence": sequence}
        return {
            "connector": "postgresql",
            "name": PREFIX,
            "snapshot": snapshot,
            "schema": schema,
            "table": name,
            **place,
        }

    def _change(self, op: str, table: str, key: int, row: Row | None, snapshot: str = "false") -> Record:
        if op != "r":
            self.lsn += 48
        payload = {
            "before": None,
            "after": row and self._encoded(row),
            "source": self._source(table, snapshot),
            "op": op,
        }
        value = {"schema": self._schema(table), "payload": payload} if self.schemas else payload
        return Record(topic_of(table), self._key(table, key), json.dumps(value).encode())

    def _encoded(self, row: Row) -> Row:
        return {name: self._decimal(value) if isinstance(value, Decimal) else value for name, value in row.items()}

    def _decimal(self, value: Decimal) -> str:
        if not self.schemas:
            return str(value)
        whole = int(value * 100)
        return base64.b64encode(whole.to_bytes(8, "big", signed=True)).decode()

    def _schema(self, table: str) -> Row:
        row = {"type": "struct", "fields": self.fields[table], "optional": True}
        parts = [{**row, "field": "before"}, {**row, "field": "after"}]
        return {"type": "struct", "fields": [*parts, {"type": "string", "field": "op"}], "name": "Envelope"}

    def _key(self, table: str, key: int) -> bytes:
        payload = {"id": key}
        schema = {"type": "struct", "fields": self.fields[table][:1]}
        return json.dumps({"schema": schema, "payload": payload} if self.schemas else payload).encode()

    def _boundary(self, status: str, counts: Mapping[str, int]) -> Record:
        collections = [{"data_collection": table, "event_count": count} for table, count in counts.items()]
        value = {"status": status, "id": f"{self.tx}:{self.lsn}", "event_count": sum(counts.values())}
        payload = {**value, "data_collections": collections or None}
        wrapped = {"schema": {"type": "struct", "fields": []}, "payload": payload} if self.schemas else payload
        return Record(TRANSACTIONS, json.dumps({"id": payload["id"]}).encode(), json.dumps(wrapped).encode())
