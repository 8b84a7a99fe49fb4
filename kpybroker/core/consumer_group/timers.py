"""What a member of a consumer group has but its records have not: its session, its rebalance timer, who is charged.

One heap for all groups of a machine, whose entries may be stale, as that of classic groups (`core.group.timers`): a
heartbeat only moves the end of the session; the member's entry is set again when it is due. Bounded: one current
entry a member and kind; stale ones are dropped when there are as many of them.
"""

from __future__ import annotations

import heapq
from enum import Enum
from typing import Final, NamedTuple

from kpybroker.core.budget import UNOWNED, Owner

TIDY_MIN: Final = 1_000
"""Below this many entries, no one looks for stale ones."""


class TimerKind(Enum):
    """What a timer ends: a session, or the time to give up partitions; of a classic member, to rejoin and to sync."""

    SESSION = 0
    REBALANCE = 1
    JOIN = 2
    SYNC = 3


class LiveMember:
    """A member as long as this coordinator has it. Deadlines are monotonic seconds; None: not running.

    `rebalance_epoch` is the member epoch that the rebalance timer is for.
    """

    __slots__ = ("deadlines", "entries", "group_id", "is_gone", "member_id", "owner", "rebalance_epoch", "size")

    def __init__(self, group_id: str, member_id: str, owner: Owner = UNOWNED) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.owner = owner
        self.size = 0  # bytes in memory, as last charged
        self.is_gone = False
        self.deadlines: list[float | None] = [None] * len(TimerKind)  # by TimerKind
        self.entries: list[float | None] = [None] * len(TimerKind)  # deadlines of its current entries in the heap
        self.rebalance_epoch = -1


class Timer(NamedTuple):
    """An entry of the heap; `sequence` orders equal deadlines by when they were set."""

    deadline: float
    sequence: int
    kind: TimerKind
    live: LiveMember


class ConsumerTimers:
    """All timers of the consumer groups of one machine."""

    __slots__ = ("_heap", "_sequence", "_tidy_at")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._sequence = 0
        self._tidy_at = TIDY_MIN

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def deadline(self) -> float | None:
        """The earliest deadline; None without timers."""
        return self._heap[0].deadline if self._heap else None

    def start(self, kind: TimerKind, live: LiveMember, deadline: float) -> None:
        """The timer now ends at `deadline`."""
        live.deadlines[kind.value] = deadline
        entry = live.entries[kind.value]
        if entry is None or deadline < entry:
            live.entries[kind.value] = deadline
            self._push(deadline, kind, live)

    def start_if_stopped(self, kind: TimerKind, live: LiveMember, deadline: float) -> None:
        """The timer ends at `deadline`, unless it is running."""
        if live.deadlines[kind.value] is None:
            self.start(kind, live, deadline)

    def stop(self, kind: TimerKind, live: LiveMember) -> None:
        """The timer does not run any more."""
        live.deadlines[kind.value] = None

    def pop_due(self, now: float) -> list[tuple[TimerKind, LiveMember]]:
        """The timers that have ended, oldest first; each is stopped. One that was moved is set again."""
        due = []
        while self._heap and self._heap[0].deadline <= now:
            timer = heapq.heappop(self._heap)
            kind, live = timer.kind, timer.live
            if not _is_current(timer):
                continue
            live.entries[kind.value] = None
            deadline = live.deadlines[kind.value]
            if deadline is None:
                continue
            if deadline > now:
                self.start(kind, live, deadline)
            else:
                live.deadlines[kind.value] = None
                due.append((kind, live))
        return due

    def _push(self, deadline: float, kind: TimerKind, live: LiveMember) -> None:
        if len(self._heap) >= self._tidy_at:
            self._heap = [timer for timer in self._heap if _is_current(timer)]
            heapq.heapify(self._heap)
            self._tidy_at = max(TIDY_MIN, 2 * len(self._heap))
        self._sequence += 1
        heapq.heappush(self._heap, Timer(deadline, self._sequence, kind, live))


def _is_current(timer: Timer) -> bool:
    return not timer.live.is_gone and timer.live.entries[timer.kind.value] == timer.deadline
