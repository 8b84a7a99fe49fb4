"""The timers of a group state machine, in one heap (`core.timer_heap`).

A heartbeat only moves `member.heartbeat_at`; the member's entry stays in the heap, and is set again when it is due. So
a due entry counts only if its member or group still has that deadline. Bounded: one current entry for each member,
pending member, rebalance and sync phase, and as many stale ones.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.group.members import Member
from kpybroker.core.group.state import Group
from kpybroker.core.group.values import GroupState
from kpybroker.core.timer_heap import TimerHeap


class TimerKind(Enum):
    """What a timer ends: a session, the use of a pending member id, the join phase, the sync phase."""

    HEARTBEAT = 0
    PENDING_MEMBER = 1
    REBALANCE = 2
    SYNC = 3


class Timer(NamedTuple):
    """An entry of the heap; `deadline` is a monotonic time in seconds."""

    deadline: float
    kind: TimerKind
    group: Group
    member: Member | None = None
    pending_member_id: str = ""


class Timers:
    """All timers of one group state machine, in one heap."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: TimerHeap[Timer] = TimerHeap(self._may_count)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def deadline(self) -> float | None:
        """The earliest monotonic deadline; None without timers."""
        return self._heap.deadline

    def heartbeat(self, group: Group, member: Member, deadline: float) -> None:
        """The member's session now ends at `deadline`."""
        member.heartbeat_at = deadline
        if member.timer_at is None or deadline < member.timer_at:
            member.timer_at = deadline
            self._heap.push(Timer(deadline, TimerKind.HEARTBEAT, group, member))

    def pending_member(self, group: Group, member_id: str, deadline: float, owner: Owner = UNOWNED) -> None:
        """The member id given out by KIP-394 expires at `deadline` unless it joins."""
        group.add_pending(member_id, deadline, owner)
        self._heap.push(Timer(deadline, TimerKind.PENDING_MEMBER, group, None, member_id))

    def rebalance(self, group: Group, deadline: float) -> None:
        """The join phase of the group ends at `deadline`."""
        self._heap.push(Timer(deadline, TimerKind.REBALANCE, group))

    def sync(self, group: Group, deadline: float) -> None:
        """The sync phase of the group ends at `deadline`."""
        group.sync_deadline = deadline
        self._heap.push(Timer(deadline, TimerKind.SYNC, group))

    def pop_due(self, now: float) -> list[Timer]:
        """Remove and return the entries that are due, oldest first; check each with `is_current` when it is handled."""
        due = []
        while timer := self._heap.pop(now):
            due.append(timer)
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

    def _may_count(self, timer: Timer) -> bool:
        """Whether `is_current` may be true when the timer is due."""
        group, member = timer.group, timer.member
        if group.state is GroupState.DEAD:
            return False
        if member is not None:
            return member.timer_at == timer.deadline and group.members.get(member.member_id) is member
        return self.is_current(timer, timer.deadline)
