"""The heap of timers: entries by deadline, then by when they were set; stale ones do not pile up."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.timer_heap import TIDY_MIN, TimerHeap


class Entry(NamedTuple):
    deadline: float
    name: str


def heap(stale: frozenset[str] = frozenset()) -> TimerHeap[Entry]:
    return TimerHeap(lambda entry: entry.name not in stale)


@given(deadlines=st.lists(st.integers(0, 5)), now=st.integers(0, 5))
def test_entries_are_popped_by_deadline_then_by_when_they_were_set(deadlines: list[int], now: int) -> None:
    timers = heap()
    entries = [Entry(deadline, f"{n:04}") for n, deadline in enumerate(deadlines)]
    for entry in entries:
        timers.push(entry)
    assert timers.deadline == min(deadlines, default=None)
    popped = []
    while (due := timers.pop(now)) is not None:
        popped.append(due)
    assert popped == sorted(entry for entry in entries if entry.deadline <= now)
    assert len(timers) == len(entries) - len(popped)


def test_stale_entries_are_dropped_when_there_are_many_and_others_stay() -> None:
    timers = heap(stale=frozenset(["stale"]))
    timers.push(Entry(2.0, "first"))
    for n in range(10 * TIDY_MIN):
        timers.push(Entry(3.0 + n, "stale"))
    assert len(timers) <= TIDY_MIN
    assert timers.pop(1.0) is None
    assert timers.pop(2.0) == Entry(2.0, "first")


def test_a_heap_without_stale_entries_holds_them_all() -> None:
    timers = heap()
    for n in range(3 * TIDY_MIN):
        timers.push(Entry(n, ""))
    assert len(timers) == 3 * TIDY_MIN
