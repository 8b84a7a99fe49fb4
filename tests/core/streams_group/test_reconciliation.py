"""One step of a member towards its target: the cases of Kafka's CurrentAssignmentBuilderTest, and what always holds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.streams_group.members import CurrentTasks, HeldTasks, MemberState, Tasks, has_any, is_within
from kpybroker.core.streams_group.reconciliation import Goal, reconcile
from kpybroker.wire.errors import ErrorCode, KafkaError

STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS
SUB = "0"


@dataclass(frozen=True, slots=True)
class Held:
    """Who has tasks of the subtopology: processes of active tasks, and of standby tasks."""

    active: tuple[tuple[int, str], ...] = ()
    spare: tuple[tuple[int, str], ...] = ()

    def active_tasks(self, subtopology_id: str) -> set[int]:
        return {task for task, _ in self.active}

    def spares(self, process_id: str, subtopology_id: str) -> set[int]:
        return {task for task, process in self.spare if process == process_id}

    def copies(self, process_id: str, subtopology_id: str) -> set[int]:
        return {task for task, process in (*self.active, *self.spare) if process == process_id}


NO_ONE = Held()


def tasks(*active: int, standby: tuple[int, ...] = ()) -> Tasks:
    return Tasks({SUB: frozenset(active)} if active else {}, {SUB: frozenset(standby)} if standby else {})


def held(epoch: int, *active: int, standby: tuple[int, ...] = ()) -> HeldTasks:
    return HeldTasks(
        {SUB: dict.fromkeys(active, epoch)} if active else {}, {SUB: frozenset(standby)} if standby else {}
    )


def step(
    current: CurrentTasks, epoch: int, target: Tasks, owned: Tasks | None = None, holders: Held = NO_ONE
) -> CurrentTasks:
    return reconcile(current, Goal(epoch, target, "p"), holders, owned)


def test_stable_in_the_epoch_of_the_target_stays_as_it_is() -> None:
    current = CurrentTasks(5, 5, STABLE, held(5, 1))
    assert step(current, 5, tasks(1, 2)) is current


def test_a_new_member_gets_what_is_free() -> None:
    new = step(CurrentTasks(), 1, tasks(0, 1, standby=(2,)), tasks())
    assert new == CurrentTasks(1, 0, STABLE, held(1, 0, 1, standby=(2,)))


def test_a_task_of_another_is_waited_for() -> None:
    busy = Held(active=((1, "q"),))
    waits = step(CurrentTasks(), 1, tasks(0, 1), tasks(), busy)
    assert waits == CurrentTasks(1, 0, UNRELEASED, held(1, 0))
    still = step(waits, 1, tasks(0, 1), None, busy)
    assert still == CurrentTasks(1, 1, UNRELEASED, held(1, 0))
    assert step(still, 1, tasks(0, 1)) == CurrentTasks(1, 1, STABLE, held(1, 0, 1))


def test_what_is_not_in_the_target_is_given_up_first_and_the_epoch_stays() -> None:
    current = CurrentTasks(5, 5, STABLE, held(4, 0, 1))
    revokes = step(current, 6, tasks(0, 2), tasks(0, 1))
    assert revokes == CurrentTasks(5, 5, UNREVOKED, held(4, 0), held(4, 1))
    assert step(revokes, 6, tasks(0, 2), tasks(0, 1)) is revokes
    assert step(revokes, 6, tasks(0, 2), None) is revokes
    done = step(revokes, 6, tasks(0, 2), tasks(0))
    assert done == CurrentTasks(6, 5, STABLE, HeldTasks({SUB: {0: 4, 2: 6}}))


def test_what_the_member_does_not_run_any_more_is_not_waited_for() -> None:
    current = CurrentTasks(5, 5, STABLE, held(5, 0, 1))
    assert step(current, 6, tasks(0), tasks(0)) == CurrentTasks(6, 5, STABLE, held(5, 0))


def test_a_revocation_that_goes_on_for_a_newer_target_moves_one_epoch() -> None:
    current = CurrentTasks(5, 5, UNREVOKED, held(5, 0), held(5, 1))
    assert step(current, 8, tasks(), tasks(0)) == CurrentTasks(6, 5, UNREVOKED, HeldTasks(), held(5, 0))


def test_standby_of_the_own_process_must_be_gone_before_the_task_is_active_there() -> None:
    waits = step(CurrentTasks(), 1, tasks(0), tasks(), Held(spare=((0, "p"),)))
    assert waits.state is UNRELEASED
    assert step(CurrentTasks(), 1, tasks(0), tasks(), Held(spare=((0, "q"),))).state is STABLE


@pytest.mark.parametrize(("process", "state"), [("p", UNRELEASED), ("q", STABLE)])
def test_a_standby_waits_for_a_copy_in_its_process_only(process: str, state: MemberState) -> None:
    target = tasks(standby=(0,))
    assert step(CurrentTasks(), 1, target, tasks(), Held(active=((0, process),))).state is state
    assert step(CurrentTasks(), 1, target, tasks(), Held(spare=((0, process),))).state is state


def test_a_member_of_a_state_of_a_later_kafka_starts_from_nothing() -> None:
    current = CurrentTasks(5, 5, MemberState(9), held(5, 0))
    assert current.state is MemberState.UNKNOWN
    for owned in (None, tasks(0)):
        with pytest.raises(KafkaError) as raised:
            step(current, 6, tasks(0), owned)
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(current, 6, tasks(0), tasks()) == CurrentTasks(6, 5, STABLE, held(5, 0))


INDEXES = st.frozensets(st.integers(0, 3))
SOME = st.builds(lambda active, standby: tasks(*active, standby=tuple(standby - active)), INDEXES, INDEXES)


@given(SOME, SOME, st.none() | SOME, INDEXES)
def test_a_member_never_runs_what_it_should_not_nor_what_another_has(
    has: Tasks, target: Tasks, owned: Tasks | None, taken: frozenset[int]
) -> None:
    before = CurrentTasks(3, 3, STABLE, held(3, *has.active.get(SUB, ()), standby=tuple(has.standby.get(SUB, ()))))
    mine = has.active.get(SUB, frozenset())
    others = Held(active=tuple((task, "q") for task in taken - mine) + tuple((task, "p") for task in mine))
    after = step(before, 4, target, owned, others)
    now = frozenset(after.assigned.active.get(SUB, ()))
    assert now <= target.active.get(SUB, frozenset())
    assert not (now - mine) & taken
    if after.member_epoch == 4:
        assert after.pending_revocation.is_empty
        assert (after.state is STABLE) == (
            now == target.active.get(SUB, frozenset())
            and after.assigned.standby.get(SUB, frozenset()) == target.standby.get(SUB, frozenset())
        )
    else:
        assert after.state is UNREVOKED
        assert owned is None or has_any(owned, after.pending_revocation)


def test_what_a_member_reports_is_compared_by_kind() -> None:
    assert is_within(tasks(0), held(1, 0, 1))
    assert not is_within(tasks(0, 2), held(1, 0, 1))
    assert not is_within(tasks(standby=(0,)), held(1, 0))
    assert not is_within(None, held(1, 0))
    assert not has_any(tasks(standby=(0,)), held(1, 0))
    assert has_any(tasks(1, 0), held(1, 0))
