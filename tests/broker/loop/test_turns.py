"""Turns rotate among clients; what one of them has put in is first in, first out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.broker.loop.turns import Turns


def taken(turns: Turns[str]) -> list[str]:
    return [turns.take() for _ in range(len(turns))]


def test_a_client_with_one_item_waits_for_one_of_each_other() -> None:
    turns: Turns[str] = Turns()
    for number in range(1000):
        turns.put("crowd", f"crowd{number}")
    turns.put("other", "other0")
    turns.put("third", "third0")
    turns.put("other", "other1")
    assert taken(turns)[:7] == ["crowd0", "other0", "third0", "crowd1", "other1", "crowd2", "crowd3"]
    assert not turns
    with pytest.raises(KeyError):
        turns.take()


def test_what_is_discarded_has_no_turn() -> None:
    turns: Turns[str] = Turns()
    for item in ("a0", "b0", "a1"):
        turns.put(item[0], item)
    turns.discard("b", "b0")
    turns.discard("b", "b0")
    turns.discard("a", "never there")
    turns.discard("a", "a0")
    assert taken(turns) == ["a1"]


@given(st.lists(st.one_of(st.sampled_from("abcd"), st.none()), max_size=60))
def test_no_client_waits_for_two_items_of_another(steps: list[str | None]) -> None:
    """A letter puts an item of that client, None takes one. Between two items of one client every other client that
    has waited all the time had one.
    """
    turns: Turns[tuple[str, int]] = Turns()
    waiting: dict[str, list[int]] = {}
    passed: dict[tuple[str, str], int] = {}  # how often the second was served since the first began to wait
    for number, step in enumerate([*steps, *[None] * 60]):
        if step is not None:
            turns.put(step, (step, number))
            waiting.setdefault(step, []).append(number)
            continue
        assert bool(turns) == bool(waiting)
        if not turns:
            continue
        client, item = turns.take()
        assert item == waiting[client].pop(0)
        if not waiting[client]:
            del waiting[client]
        for other in waiting:
            if other != client:
                passed[other, client] = passed.get((other, client), 0) + 1
                assert passed[other, client] <= 2  # it may have begun to wait just after the first's turn
        passed = {pair: count for pair, count in passed.items() if pair[0] != client}
