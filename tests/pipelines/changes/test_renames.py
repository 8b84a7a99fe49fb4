"""A long value goes with its row where the primary key changes."""

from __future__ import annotations

from typing import Any

from kpybroker.pipelines.changes.columns import UNAVAILABLE
from kpybroker.pipelines.changes.renames import follow


def event(offset: int, op: str, key: int, lsn: int, profile: str | None = None) -> dict[str, Any]:
    place = {"topic": "t", "partition": 0, "offset": offset}
    after = None if op == "d" else {"id": str(key), "profile": profile}
    return {**place, "op": op, "key": f'{{"id":{key}}}', "tx": 1, "lsn": lsn, "after": after}


def test_from_the_row_that_is_there_over_two_changes_of_the_key() -> None:
    kept = {'{"id":1}': {"profile": "long"}}
    events = [
        event(0, "d", 1, 10),
        event(1, "c", 2, 10, UNAVAILABLE),
        event(2, "d", 2, 20),
        event(3, "c", 3, 20, UNAVAILABLE),
    ]
    assert follow(events, kept) == [
        (("t", 0, 1), {"id": "2", "profile": "long"}),
        (("t", 0, 3), {"id": "3", "profile": "long"}),
    ]


def test_from_an_event_before_and_not_from_a_row_that_had_the_key_earlier() -> None:
    events = [
        event(0, "c", 1, 10, "new"),
        event(1, "u", 1, 20, UNAVAILABLE),
        event(2, "d", 1, 30),
        event(3, "c", 2, 30, UNAVAILABLE),
        event(4, "c", 1, 40, "another"),
    ]
    assert follow(events, {'{"id":1}': {"profile": "old"}}) == [(("t", 0, 3), {"id": "2", "profile": "new"})]


def test_a_create_that_lacks_nothing_is_left_alone() -> None:
    assert follow([event(0, "d", 1, 10), event(1, "c", 2, 10, "whole")], {}) == []
