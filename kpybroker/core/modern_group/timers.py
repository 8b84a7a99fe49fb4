"""What a member of a group has but its records have not: its session, its rebalance timer, who is charged.

One heap for all groups of a machine (`core.timer_heap`): a heartbeat only moves the end of the session; the member's
entry is set again when it is due. Bounded: one current entry a member and kind, and as many stale ones.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.timer_heap import TimerHeap


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
    """An entry of the heap."""

    deadline: float
    kind: TimerKind
    live: LiveMember


class MemberTimers:
    """All timers of the groups of one kind in a machine. `heap` has the earliest deadline of all."""

    __slots__ = ("heap",)

    def __init__(self) -> None:
        self.heap: TimerHeap[Timer] = TimerHeap(_is_current)

    def __len__(self) -> int:
        return len(self.heap)

    @property
    def deadline(self) -> float | None:
        """The earliest deadline; None without timers."""
        return self.heap.deadline

    def start(self, kind: TimerKind, live: LiveMember, deadline: float) -> None:
        """The timer now ends at `deadline`."""
        live.deadlines[kind.value] = deadline
        entry = live.entries[kind.value]
        if entry is None or deadline < entry:
            live.entries[kind.value] = deadline
            self.heap.push(Timer(deadline, kind, live))

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
        while timer := self.heap.pop(now):
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


def _is_current(timer: Timer) -> bool:
    return not timer.live.is_gone and timer.live.entries[timer.kind.value] == timer.deadline
