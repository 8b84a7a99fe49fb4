"""State batches over others, next to the rule applied to each offset by itself."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.share_coordinator.batches import Batches, combine
from kpybroker.core.share_coordinator.values import StateBatch

LAST_OFFSET = 30


@st.composite
def batch(draw: st.DrawFn) -> StateBatch:
    first = draw(st.integers(0, LAST_OFFSET))
    last = draw(st.integers(first, LAST_OFFSET))
    return StateBatch(first, last, draw(st.sampled_from([0, 2, 4])), draw(st.integers(1, 3)))


BATCHES = st.lists(batch(), max_size=8)
START = st.integers(-1, LAST_OFFSET + 2)


def by_offset(batches: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    """The delivery count and state of each offset: the highest that any batch has."""
    states: dict[int, tuple[int, int]] = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            states[offset] = max(states.get(offset, (0, 0)), (count, state))
    return states


def expanded(batches: Batches) -> dict[int, tuple[int, int]]:
    return {offset: (count, state) for first, last, state, count in batches for offset in range(first, last + 1)}


@given(BATCHES, BATCHES, START, START)
def test_each_offset_has_the_highest_count_and_then_the_highest_state(
    one: list[StateBatch], other: list[StateBatch], earlier: int, start: int
) -> None:
    so_far = combine((), one, earlier)
    combined = combine(so_far, other, start)
    assert expanded(combined) == by_offset([*so_far, *other], start)


@given(BATCHES, BATCHES, START)
def test_batches_are_in_order_and_as_few_as_possible(
    one: list[StateBatch], other: list[StateBatch], start: int
) -> None:
    combined = combine(combine((), one, -1), other, start)
    for before, after in pairwise(combined):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:]


def test_a_start_offset_cuts_what_is_before_it() -> None:
    so_far = (StateBatch(0, 4, 2, 1), StateBatch(5, 9, 0, 1))
    assert combine(so_far, (), 7) == (StateBatch(7, 9, 0, 1),)
    assert combine(so_far, (), 10) == ()
    assert combine(so_far, (), -1) == so_far


@pytest.mark.parametrize("count", [100, 10_000])
def test_what_does_not_touch_a_new_batch_is_kept_as_it_is(count: int) -> None:
    so_far = tuple(StateBatch(2 * index, 2 * index, 2, 1) for index in range(count))
    combined = combine(so_far, (StateBatch(101, 101, 2, 1),), -1)
    assert combined[:50] == so_far[:50]
    assert combined[50] == StateBatch(100, 102, 2, 1)
    assert all(kept is given for kept, given in zip(combined[51:], so_far[52:], strict=True))
