"""The generator's records are a history: applied one by one they are its tables."""

from __future__ import annotations

import json

from kpybroker.pipelines.changes.columns import UNAVAILABLE
from tests.pipelines.changes.generator import CUSTOMERS, ORDERS, TRANSACTIONS, Record, Shop, topic_of


def records(seed: int) -> tuple[Shop, list[Record]]:
    shop = Shop(seed, schemas=False)
    found = list(shop.snapshot(5))
    for _ in range(60):
        found += shop.transaction()
    return shop, found + list(shop.transaction(truncate=CUSTOMERS))


def test_the_same_seed_makes_the_same_records() -> None:
    assert records(4)[1] == records(4)[1] != records(5)[1]


def test_keys_are_those_of_the_tables() -> None:
    """Snapshot, inserts, updates, deletes, changed keys and a truncate, with a null after each delete."""
    shop, given = records(4)
    keys: dict[str, set[int]] = {topic_of(ORDERS): set(), topic_of(CUSTOMERS): set()}
    seen = set()
    for number, record in enumerate(given):
        if record.topic == TRANSACTIONS or record.value is None:
            continue
        op = json.loads(record.value)["op"]
        seen.add(op)
        if op == "t":
            keys[record.topic].clear()
            continue
        assert record.key is not None
        key = json.loads(record.key)["id"]
        if op == "d":
            assert given[number + 1] == Record(record.topic, record.key, None)
            keys[record.topic].remove(key)
        else:
            keys[record.topic].add(key)
    assert seen == {"r", "c", "u", "d", "t"}
    assert keys == {topic_of(table): set(rows) for table, rows in shop.tables.items()}


def test_ends_count_the_events_of_their_transactions() -> None:
    _, given = records(4)
    count = 0
    for record in given:
        if record.topic != TRANSACTIONS:
            count += record.value is not None
            continue
        said = json.loads(record.value or b"")
        if said["status"] == "END":
            assert said["event_count"] == sum(one["event_count"] for one in said["data_collections"]) == count
        count = 0


def test_some_long_values_are_left_out_after_updates_and_changed_keys() -> None:
    _, given = records(4)
    rows = [json.loads(record.value) for record in given if record.topic != TRANSACTIONS and record.value]
    ops = {one["op"] for one in rows if one["after"] and one["after"].get("profile") == UNAVAILABLE}
    assert ops == {"u", "c"}


def test_columns_change_in_all_rows() -> None:
    shop = Shop(1)
    list(shop.snapshot(3))
    shop.add_column(True)
    shop.drop_column()
    assert all(row["gift"] is True and "note" not in row for row in shop.tables[ORDERS].values())
    shop.widen_column()
    assert {"customer": "int64"}.items() <= {one["field"]: one["type"] for one in shop.fields[ORDERS]}.items()
