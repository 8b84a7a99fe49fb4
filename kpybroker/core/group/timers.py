"""The timers of a group state machine: one heap, whose entries may be stale.

A heartbeat only moves `member.heartbeat_at`; the member's entry stays in the heap, and is set again when it is due. So
a due entry counts only if its member or group still has that deadline. Bounded: one current entry for each member,
pending member, rebalance and sync phase. A stale one is removed when it is due, or when there are as many stale ones as
current ones: a session may be half an hour, and a rebalance timeout weeks.
"""

from __future__ import annotations

import heapq
from enum import Enum
from typing import Final, NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.group.state import Group, Member
from kpybroker.core.group.values import GroupState

TIDY_MIN: Final = 1_000
"""Below this many entries, no one looks for stale ones."""


class TimerKind(Enum):
    """What a timer ends: a session, the use of a pending member id, the join phase, the sync phase."""

    HEARTBEAT = 0
    PENDING_MEMBER = 1
    REBALANCE = 2
    SYNC = 3


class Timer(NamedTuple):
    """An entry of the heap; `deadline` is a monotonic time in seconds."""

    deadline: float
    sequence: int  # makes entries comparable, and orders equal deadlines by when they were set
    kind: TimerKind
    group: Group
    member: Member | None
    pending_member_id: str


class Timers:
    """All timers of one group state machine, in one heap."""

    __slots__ = ("_heap", "_sequence", "_tidy_at")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._sequence = 0
        self._tidy_at = TIDY_MIN

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def deadline(self) -> float | None:
        """The earliest monotonic deadline; None without timers."""
        return self._heap[0].deadline if self._heap else None

    def heartbeat(self, group: Group, member: Member, deadline: float) -> None:
        """The member's session now ends at `deadline`."""
        member.heartbeat_at = deadline
        if member.timer_at is None or deadline < member.timer_at:
            member.timer_at = deadline
            self._push(deadline, TimerKind.HEARTBEAT, group, member)

    def pending_member(self, group: Group, member_id: str, deadline: float, owner: Owner = UNOWNED) -> None:
        """The member id given out by KIP-394 expires at `deadline` unless it joins."""
        group.add_pending(member_id, deadline, owner)
        self._push(deadline, TimerKind.PENDING_MEMBER, group, None, member_id)

    def rebalance(self, group: Group, deadline: float) -> None:
        """The join phase of the group ends at `deadline`."""
        self._push(deadline, TimerKind.REBALANCE, group)

    def sync(self, group: Group, deadline: float) -> None:
        """The sync phase of the group ends at `deadline`."""
        group.sync_deadline = deadline
        self._push(deadline, TimerKind.SYNC, group)

    def pop_due(self, now: float) -> list[Timer]:
        """Remove and return the entries that are due, oldest first; check each with `is_current` when it is handled."""
        due = []
        while self._heap and self._heap[0].deadline <= now:
            due.append(heapq.heappop(self._heap))
        return due

    def is_current(self, timer: Timer, now: float) -> bool:
        """Whether a popped timer still counts; an early heartbeat timer is set again for the session's end."""
        group, member = timer.group, timer.member
        match timer.kind:
            case TimerKind.HEARTBEAT:
                assert member is not None
                return self._heartbeat_is_over(timer, group, member, now)
            case TimerKind.PENDING_MEMBER:
                pending = group.pending_members.get(timer.pending_member_id)
                return pending is not None and pending.deadline == timer.deadline
            case TimerKind.REBALANCE:
                return group.rebalance_timer is not None and group.rebalance_timer.deadline == timer.deadline
            case TimerKind.SYNC:
                return group.sync_deadline == timer.deadline

    def _heartbeat_is_over(self, timer: Timer, group: Group, member: Member, now: float) -> bool:
        if member.timer_at != timer.deadline or group.members.get(member.member_id) is not member:
            return False
        member.timer_at = None
        if member.heartbeat_at is None:
            return False
        if member.heartbeat_at > now:
            self.heartbeat(group, member, member.heartbeat_at)
            return False
        return True

    def _push(
        self,
        deadline: float,
        kind: TimerKind,
        group: Group,
        member: Member | None = None,
        pending_member_id: str = "",
    ) -> None:
        if len(self._heap) >= self._tidy_at:
            self._tidy()
        self._sequence += 1
        heapq.heappush(self._heap, Timer(deadline, self._sequence, kind, group, member, pending_member_id))

    def _tidy(self) -> None:
        """Drop the stale entries, and look again when there may be as many as are left."""
        self._heap = [timer for timer in self._heap if self._may_count(timer)]
        heapq.heapify(self._heap)
        self._tidy_at = max(TIDY_MIN, 2 * len(self._heap))

    def _may_count(self, timer: Timer) -> bool:
        """Whether `is_current` may be true when the timer is due."""
        group, member = timer.group, timer.member
        if group.state is GroupState.DEAD:
            return False
        if member is not None:
            return member.timer_at == timer.deadline and group.members.get(member.member_id) is member
        return self.is_current(timer, timer.deadline)
