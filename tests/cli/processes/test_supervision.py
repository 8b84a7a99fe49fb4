"""When processes are started, ended, started again and given up: scenarios without processes, on a clock of numbers."""

from __future__ import annotations

import pytest

from kpybroker.cli.processes.supervision import (
    DELAYS_S,
    RETIRE_S_MAX,
    STEADY_S,
    Announce,
    Order,
    Restart,
    Start,
    Supervision,
    Tell,
)

KILLED = -9
RETIRE, STOP = Order.RETIRE, Order.STOP


def up(count: int = 3, first: int | None = 0) -> Supervision:
    """All are ready, since time 0."""
    machine = Supervision(range(count), first)
    machine.timer(0)
    actions = [action for broker_id in range(count) for action in machine.ready(broker_id, 0)]
    assert actions[-1] == Announce()
    return machine


def test_the_one_that_keeps_the_tree_is_started_first() -> None:
    machine = Supervision([0, 1, 2], 0)
    assert machine.timer(0) == [Start(0)]
    assert machine.deadline is None
    assert machine.ready(0, 1) == [Start(1), Start(2)]
    assert machine.ready(2, 2) == []
    assert machine.ready(1, 3) == [Announce()]
    assert machine.exit_code is None


def test_with_a_zookeeper_elsewhere_all_are_started_at_once() -> None:
    assert Supervision([4, 5], None).timer(0) == [Start(4), Start(5)]


@pytest.mark.parametrize(("code", "exit_code"), [(5, 5), (2, 2), (KILLED, 1), (0, 1)])
def test_the_end_of_one_before_all_were_ready_is_the_end_of_all(code: int, exit_code: int) -> None:
    machine = Supervision([0, 1], 0)
    machine.timer(0)
    machine.ready(0, 0)
    assert machine.ended(1, code, 1) == [Tell(0, RETIRE)]
    assert machine.exit_code is None
    assert machine.retired(0) == [Tell(0, STOP)]
    assert machine.ended(0, 0, 2) == []
    assert machine.exit_code == exit_code


def test_the_first_one_that_cannot_start_ends_at_once() -> None:
    machine = Supervision([0, 1], 0)
    machine.timer(0)
    assert machine.ended(0, 4, 1) == []
    assert machine.exit_code == 4


@pytest.mark.parametrize("code", [KILLED, 0, 1, 3, 5, 6])
def test_later_one_that_ends_is_started_again_and_the_tree_learns_of_its_end(code: int) -> None:
    machine = up()
    assert machine.ended(2, code, 10) == [Restart(2, code, 0), Tell(0, Order.ENDED, 2), Start(2)]
    assert machine.ready(2, 12) == []


@pytest.mark.parametrize("code", [2, 7])
def test_what_needs_a_person_ends_all(code: int) -> None:
    machine = up(2)
    assert machine.ended(1, code, 10) == [Tell(0, RETIRE)]
    machine.retired(0)
    machine.ended(0, 0, 11)
    assert machine.exit_code == code


def test_one_that_keeps_ending_is_started_later_and_later() -> None:
    machine, now, delays = up(2), 0.0, []
    for _ in range(len(DELAYS_S) + 2):
        restart = machine.ended(1, KILLED, now)[0]
        assert isinstance(restart, Restart)
        delays.append(restart.delay_s)
        if restart.delay_s:
            assert machine.timer(now + restart.delay_s - 0.01) == []
            assert machine.deadline == now + restart.delay_s
            now += restart.delay_s
            assert machine.timer(now) == [Start(1)]
        machine.ready(1, now)
        now += 1
    assert tuple(delays) == (*DELAYS_S, DELAYS_S[-1], DELAYS_S[-1])
    restart = machine.ended(1, KILLED, now + STEADY_S)[0]
    assert restart == Restart(1, KILLED, DELAYS_S[0])


def test_the_others_wait_for_the_tree() -> None:
    machine = up()
    assert machine.ended(0, KILLED, 1) == [Restart(0, KILLED, 0), Start(0)]
    assert machine.ended(1, KILLED, 2) == [Restart(1, KILLED, 0)]
    assert machine.deadline is None
    assert machine.ended(0, KILLED, 3) == [Restart(0, KILLED, DELAYS_S[1])]
    assert machine.deadline == 3 + DELAYS_S[1]
    assert machine.timer(4) == [Start(0)]
    assert machine.ready(0, 5) == [Start(1)]


def test_a_stop_ends_controllers_then_the_others_then_the_first() -> None:
    machine = up()
    assert machine.stop(10) == [Tell(0, RETIRE), Tell(1, RETIRE), Tell(2, RETIRE)]
    assert machine.stop(10) == []
    assert machine.retired(0) == []
    assert machine.retired(2) == []
    assert machine.retired(1) == [Tell(1, STOP), Tell(2, STOP)]
    assert machine.ended(2, 0, 11) == []
    assert machine.ended(1, 0, 12) == [Tell(0, STOP)]
    assert machine.exit_code is None
    assert machine.ended(0, 0, 13) == []
    assert machine.exit_code == 0


def test_a_stop_does_not_wait_for_a_controller_that_is_stuck() -> None:
    machine = up(2)
    machine.stop(10)
    machine.retired(1)
    assert machine.deadline == 10 + RETIRE_S_MAX
    assert machine.timer(machine.deadline) == [Tell(1, STOP)]


def test_a_stop_starts_nothing_again() -> None:
    machine = up(3)
    machine.ended(1, KILLED, 1)
    machine.ended(1, KILLED, 2)  # is down now, and due in a second
    machine.stop(2.5)
    assert machine.timer(4) == []
    machine.retired(0)
    assert machine.retired(2) == [Tell(2, STOP)]
    assert machine.ended(2, KILLED, 4) == [Tell(0, STOP)]
    machine.ended(0, 0, 5)
    assert machine.exit_code == 0


def test_one_that_gets_ready_during_a_stop_retires_too() -> None:
    machine = up(2)
    machine.ended(1, KILLED, 1)
    assert machine.stop(2) == [Tell(0, RETIRE)]
    assert machine.ready(1, 3) == [Tell(1, RETIRE)]
    assert machine.retired(0) == []
    assert machine.retired(1) == [Tell(1, STOP)]


def test_a_stop_before_anything_is_ready_stops_what_starts() -> None:
    machine = Supervision([0, 1], 0)
    machine.timer(0)
    assert machine.stop(1) == [Tell(0, STOP)]
    machine.ended(0, 0, 2)
    assert machine.exit_code == 0


def test_a_stop_while_the_first_is_down_ends_the_others() -> None:
    machine = up(2)
    machine.ended(0, KILLED, 1)
    machine.ended(0, KILLED, 1)
    assert machine.stop(1.5) == [Tell(1, RETIRE)]
    assert machine.retired(1) == [Tell(1, STOP)]
    assert machine.ended(1, 0, 2) == []
    assert machine.exit_code == 0


def test_with_a_zookeeper_elsewhere_each_stops_by_itself() -> None:
    machine = up(2, None)
    assert machine.stop(1) == [Tell(0, STOP), Tell(1, STOP)]
    machine.ended(0, 0, 2)
    assert machine.exit_code is None
    machine.ended(1, 0, 2)
    assert machine.exit_code == 0
