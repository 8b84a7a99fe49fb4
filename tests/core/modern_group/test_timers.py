"""Timers of members: one heap, whose stale entries neither fire nor pile up."""

from __future__ import annotations

from kpybroker.core.modern_group.timers import LiveMember, MemberTimers, TimerKind
from kpybroker.core.timer_heap import TIDY_MIN

SESSION, REBALANCE = TimerKind.SESSION, TimerKind.REBALANCE


def test_a_timer_ends_once_at_its_time() -> None:
    timers, live = MemberTimers(), LiveMember("g", "m")
    timers.start(SESSION, live, 5.0)
    assert timers.deadline == 5.0
    assert timers.pop_due(4.9) == []
    assert timers.pop_due(5.0) == [(SESSION, live)]
    assert timers.pop_due(100.0) == []
    assert timers.deadline is None


def test_a_heartbeat_moves_the_end_without_a_new_entry() -> None:
    timers, live = MemberTimers(), LiveMember("g", "m")
    for now in range(100):
        timers.start(SESSION, live, now + 5.0)
    assert len(timers) == 1
    assert timers.pop_due(103.9) == []
    assert timers.pop_due(104.0) == [(SESSION, live)]


def test_an_earlier_end_counts() -> None:
    timers, live = MemberTimers(), LiveMember("g", "m")
    timers.start(SESSION, live, 50.0)
    timers.start(SESSION, live, 5.0)
    assert timers.pop_due(5.0) == [(SESSION, live)]
    assert timers.pop_due(60.0) == []


def test_both_timers_of_a_member_run_by_themselves() -> None:
    timers, live = MemberTimers(), LiveMember("g", "m")
    timers.start(SESSION, live, 7.0)
    timers.start(REBALANCE, live, 6.0)
    assert timers.pop_due(6.0) == [(REBALANCE, live)]
    timers.start(REBALANCE, live, 8.0)
    timers.stop(REBALANCE, live)
    assert timers.pop_due(10.0) == [(SESSION, live)]


def test_a_stopped_timer_may_start_again() -> None:
    timers, live = MemberTimers(), LiveMember("g", "m")
    timers.start(REBALANCE, live, 5.0)
    timers.stop(REBALANCE, live)
    timers.start(REBALANCE, live, 9.0)
    assert timers.pop_due(5.0) == []
    assert timers.pop_due(9.0) == [(REBALANCE, live)]


def test_those_that_end_together_come_in_the_order_in_which_they_were_set() -> None:
    timers = MemberTimers()
    members = [LiveMember("g", str(number)) for number in range(5)]
    for live in members:
        timers.start(SESSION, live, 5.0)
    assert [live for _, live in timers.pop_due(5.0)] == members


def test_members_that_are_gone_have_no_timers_and_do_not_pile_up() -> None:
    timers = MemberTimers()
    for number in range(10 * TIDY_MIN):
        live = LiveMember("g", str(number))
        timers.start(SESSION, live, 1_000_000.0 + number)
        live.is_gone = True
    assert len(timers) <= TIDY_MIN
    assert timers.pop_due(10_000_000.0) == []
