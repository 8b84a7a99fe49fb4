"""Timers in the order of their deadlines: one heap, whose entries may be stale.

What has a timer keeps its deadline itself. Moving a deadline to later touches no heap: the entry that is there is due
too early, and is set again then. Stopping it leaves a stale entry. Stale ones are dropped when they are due, or when
there are as many of them as of others: deadlines may be weeks away.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

TIDY_MIN: Final = 1_000
"""Below this many entries, no one looks for stale ones."""


class HasDeadline(Protocol):
    """An entry: what is due, and when."""

    @property
    def deadline(self) -> float:
        """Monotonic seconds."""
        ...


T = TypeVar("T", bound=HasDeadline)


class TimerHeap(Generic[T]):
    """`may_count(entry)`: whether the entry may still mean something when it is due; others are dropped sooner."""

    __slots__ = ("_entries", "_may_count", "_sequence", "_tidy_at")

    def __init__(self, may_count: Callable[[T], bool]) -> None:
        self._entries: list[tuple[float, int, T]] = []
        self._may_count = may_count
        self._sequence = 0  # makes entries comparable, and orders equal deadlines by when they were set
        self._tidy_at = TIDY_MIN

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def deadline(self) -> float | None:
        """The earliest monotonic deadline; None without timers."""
        return self._entries[0][0] if self._entries else None

    def push(self, entry: T) -> None:
        """Add an entry, and drop the stale ones if there may be as many of them as of others."""
        if len(self._entries) >= self._tidy_at:
            self._entries = [one for one in self._entries if self._may_count(one[2])]
            heapq.heapify(self._entries)
            self._tidy_at = max(TIDY_MIN, 2 * len(self._entries))
        self._sequence += 1
        heapq.heappush(self._entries, (entry.deadline, self._sequence, entry))

    def pop(self, now: float) -> T | None:
        """Remove and return the oldest entry that is due; None if none is."""
        if self._entries and self._entries[0][0] <= now:
            return heapq.heappop(self._entries)[2]
        return None
