"""Timers: due entries in order, stale ones ignored, no heap operation for most heartbeats."""

from __future__ import annotations

from kpybroker.core.group.members import Member, RebalanceTimer
from kpybroker.core.group.state import Group
from kpybroker.core.group.timers import TimerKind, Timers


def member(member_id: str = "m") -> Member:
    return Member(
        member_id=member_id,
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=(("p", b""),),
    )


def due(timers: Timers, now: float) -> list[tuple[TimerKind, float]]:
    return [(timer.kind, timer.deadline) for timer in timers.pop_due(now) if timers.is_current(timer, now)]


def test_a_heartbeat_moves_the_end_of_the_session() -> None:
    timers, group, someone = Timers(), Group("g"), member()
    group.add(someone)
    for beat in range(1, 1001):
        timers.heartbeat(group, someone, float(beat))
    assert len(timers) == 1
    assert due(timers, 999.0) == []
    assert timers.deadline == 1000.0
    assert due(timers, 1000.0) == [(TimerKind.HEARTBEAT, 1000.0)]
    assert timers.deadline is None


def test_an_earlier_end_counts() -> None:
    timers, group, someone = Timers(), Group("g"), member()
    group.add(someone)
    timers.heartbeat(group, someone, 300.0)
    timers.heartbeat(group, someone, 10.0)
    assert due(timers, 10.0) == [(TimerKind.HEARTBEAT, 10.0)]
    timers.heartbeat(group, someone, 310.0)
    assert due(timers, 300.0) == []
    assert due(timers, 310.0) == [(TimerKind.HEARTBEAT, 310.0)]


def test_timers_of_removed_members_are_ignored() -> None:
    timers, group, someone = Timers(), Group("g"), member()
    group.add(someone)
    timers.heartbeat(group, someone, 1.0)
    group.remove("m")
    group.add(member())  # another of the same name
    assert due(timers, 1.0) == []


def test_pending_ids_expire_unless_used() -> None:
    timers, group = Timers(), Group("g")
    timers.pending_member(group, "a", 1.0)
    timers.pending_member(group, "b", 1.0)
    group.remove("a")
    assert [timer.pending_member_id for timer in timers.pop_due(1.0) if timers.is_current(timer, 1.0)] == ["b"]


def test_rebalances_and_syncs_end_at_their_present_deadline_only() -> None:
    timers, group = Timers(), Group("g")
    for deadline in (1.0, 2.0):
        group.rebalance_timer = RebalanceTimer(deadline)
        timers.rebalance(group, deadline)
        timers.sync(group, deadline + 2)
    assert due(timers, 5.0) == [(TimerKind.REBALANCE, 2.0), (TimerKind.SYNC, 4.0)]
