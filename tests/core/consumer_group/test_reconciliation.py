"""One step of a member towards its target: the cases of Kafka's CurrentAssignmentBuilderTest, and what always holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.consumer_group.members import CurrentAssignment, MemberState, PartitionEpochs
from kpybroker.core.consumer_group.reconciliation import Goal, reconcile
from kpybroker.wire.errors import ErrorCode, KafkaError

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
Plain = dict[bytes, set[int]]


def at(epoch: int, **partitions: set[int]) -> dict[bytes, dict[int, int]]:
    """Partitions of the topics a and b that a member got in one epoch."""
    return {name.encode() * 16: dict.fromkeys(sorted(indexes), epoch) for name, indexes in partitions.items()}


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a member when it is reconciled: what it says that it owns, what others have, what it wants."""

    owned: Plain | None = None
    taken: Plain = field(default_factory=dict)
    subscribed: tuple[bytes, ...] = (A, B)
    changed: bool = False
    """Whether its subscription has."""


def step(current: CurrentAssignment, epoch: int, target: Plain, around: Around = Around()) -> CurrentAssignment:
    """What the member has itself is never free."""

    def is_free(topic_id: bytes, partition: int) -> bool:
        return partition not in around.taken.get(topic_id, ()) and current.epoch_of(topic_id, partition) is None

    goal = Goal(epoch, {topic_id: frozenset(indexes) for topic_id, indexes in target.items()}, around.subscribed)
    owned = around.owned
    says = None if owned is None else {topic_id: frozenset(indexes) for topic_id, indexes in owned.items()}
    return reconcile(current, goal, is_free, says, has_subscription_changed=around.changed)


def member(
    epoch: int, state: MemberState, assigned: PartitionEpochs, pending: PartitionEpochs | None = None
) -> CurrentAssignment:
    return CurrentAssignment(epoch, epoch, state, assigned, pending or {})


def test_stable_with_the_same_epoch_stays_as_it_is() -> None:
    current = member(10, STABLE, at(10, a={1}))
    assert step(current, 10, {A: {1, 2}}) is current


def test_stable_to_stable_in_the_next_epoch() -> None:
    current = member(10, STABLE, at(10, a={1, 2}))
    assert step(current, 11, {A: {1, 2}}) == CurrentAssignment(11, 10, STABLE, at(10, a={1, 2}))


def test_new_partitions_have_the_new_epoch_and_old_ones_theirs() -> None:
    current = member(10, STABLE, at(10, a={1}))
    assigned = {A: {1: 10, 4: 11}, B: {7: 11}}
    assert step(current, 11, {A: {1, 4}, B: {7}}) == CurrentAssignment(11, 10, STABLE, assigned)


@pytest.mark.parametrize("owned", [None, {A: {1, 2}}, {A: {2}}])
def test_what_must_be_given_up_keeps_the_member_in_its_epoch(owned: Plain | None) -> None:
    current = member(10, STABLE, at(10, a={1, 2}, b={4}))
    expected = CurrentAssignment(10, 10, UNREVOKED, at(10, a={1}, b={4}), at(10, a={2}))
    assert step(current, 11, {A: {1, 3}, B: {4}}, Around(owned=owned)) == expected


def test_what_the_member_no_longer_owns_need_not_be_given_up() -> None:
    current = member(10, STABLE, at(10, a={1, 2}))
    expected = CurrentAssignment(11, 10, STABLE, {A: {1: 10, 3: 11}})
    assert step(current, 11, {A: {1, 3}}, Around(owned={A: {1}})) == expected


def test_what_others_have_is_waited_for() -> None:
    current = member(10, STABLE, at(10, a={1}))
    expected = CurrentAssignment(11, 10, UNRELEASED, {A: {1: 10, 3: 11}})
    assert step(current, 11, {A: {1, 3, 4}}, Around(taken={A: {4}})) == expected
    nothing_new = CurrentAssignment(11, 10, UNRELEASED, at(10, a={1}))
    assert step(current, 11, {A: {1, 4}}, Around(taken={A: {4}})) == nothing_new


@pytest.mark.parametrize("owned", [None, {A: {1, 2}}, {A: {1}, B: {4}}])
def test_unrevoked_stays_until_all_is_given_up(owned: Plain | None) -> None:
    current = member(10, UNREVOKED, at(10, a={1}), at(10, a={2}, b={4}))
    assert step(current, 12, {A: {1}}, Around(owned=owned)) is current


def test_unrevoked_to_stable() -> None:
    current = member(10, UNREVOKED, at(10, a={1}), at(10, a={2}))
    assert step(current, 11, {A: {1, 5}}, Around(owned={A: {1}})) == CurrentAssignment(
        11, 10, STABLE, {A: {1: 10, 5: 11}}
    )


def test_unrevoked_to_unrevoked_with_a_newer_target() -> None:
    current = member(10, UNREVOKED, at(10, a={1, 3}), at(10, a={2}))
    expected = CurrentAssignment(10, 10, UNREVOKED, at(10, a={1}), at(10, a={3}))
    assert step(current, 12, {A: {1}}, Around(owned={A: {1, 3}})) == expected


def test_unrevoked_to_unreleased() -> None:
    current = member(10, UNREVOKED, at(10, a={1}), at(10, a={2}))
    expected = CurrentAssignment(11, 10, UNRELEASED, at(10, a={1}))
    assert step(current, 11, {A: {1, 5}}, Around(owned={A: {1}}, taken={A: {5}})) == expected


def test_what_was_to_be_given_up_comes_back() -> None:
    current = member(10, UNREVOKED, at(10, a={1}), at(10, a={2}))
    assert step(current, 12, {A: {1, 2}}, Around(owned={A: {1}})) == CurrentAssignment(
        12, 10, STABLE, {A: {1: 10, 2: 12}}
    )


def test_unreleased_to_stable_when_others_have_released() -> None:
    current = member(11, UNRELEASED, at(10, a={1}))
    assert step(current, 11, {A: {1, 4}}) == CurrentAssignment(11, 11, STABLE, {A: {1: 10, 4: 11}})


def test_unreleased_to_unreleased() -> None:
    current = member(11, UNRELEASED, at(11, a={1}))
    assert step(current, 11, {A: {1, 4}}, Around(taken={A: {4}})) == current


def test_unreleased_to_unrevoked_with_a_newer_target() -> None:
    current = member(11, UNRELEASED, at(11, a={1, 2}))
    expected = CurrentAssignment(11, 11, UNREVOKED, at(11, a={1}), at(11, a={2}))
    assert step(current, 12, {A: {1}}, Around(owned={A: {1, 2}})) == expected


def test_an_unknown_state_is_fenced_unless_nothing_is_owned() -> None:
    current = member(10, MemberState.UNKNOWN, at(10, a={1, 2}))
    for owned in (None, {A: {1}}):
        with pytest.raises(KafkaError) as raised:
            step(current, 12, {A: {1}}, Around(owned=owned))
        assert raised.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert step(current, 12, {A: {1}}, Around(owned={})) == CurrentAssignment(12, 10, STABLE, at(10, a={1}))


@pytest.mark.parametrize("epoch", [10, 11])
def test_a_topic_that_is_not_wanted_any_more_is_given_up(epoch: int) -> None:
    """With the old target or with a new one that still has it."""
    current = member(10, STABLE, at(10, a={1}, b={4}))
    expected = CurrentAssignment(10, 10, UNREVOKED, at(10, b={4}), at(10, a={1}))
    assert step(current, epoch, {A: {1}, B: {4}}, Around(subscribed=(B,), changed=True)) == expected


@pytest.mark.parametrize("subscribed", [(B,), ()])
def test_a_topic_that_is_not_wanted_and_not_owned_is_just_gone(subscribed: tuple[bytes, ...]) -> None:
    current = member(10, STABLE, at(10, a={1}))
    step_to = step(current, 10, {A: {1}}, Around(owned={}, subscribed=subscribed, changed=True))
    assert step_to == CurrentAssignment(10, 10, STABLE, {})


def test_unrevoked_with_less_wanted_gives_up_more() -> None:
    current = member(10, UNREVOKED, at(10, a={1}, b={4}), at(10, a={2}))
    expected = CurrentAssignment(10, 10, UNREVOKED, at(10, b={4}), {A: {2: 10, 1: 10}})
    assert step(current, 12, {B: {4}}, Around(owned={A: {1, 2}, B: {4}}, subscribed=(B,), changed=True)) == expected


def test_a_subscription_that_takes_nothing_away_changes_nothing() -> None:
    current = member(10, STABLE, at(10, a={1}))
    assert step(current, 10, {A: {1}}, Around(subscribed=(A,), changed=True)) is current


# --- what always holds

INDEXES = st.sets(st.integers(0, 5))
PARTITIONS = st.fixed_dictionaries({}, optional={A: INDEXES, B: INDEXES})
STATES = st.sampled_from([STABLE, UNREVOKED, UNRELEASED])


AROUND = st.builds(
    Around,
    owned=st.none() | PARTITIONS,
    taken=PARTITIONS,
    subscribed=st.sampled_from([(A, B), (A,), ()]),
    changed=st.booleans(),
)


@given(PARTITIONS, PARTITIONS, STATES, st.integers(5, 7), PARTITIONS, AROUND)
def test_a_member_never_gets_what_another_has_nor_forgets_what_it_owns(
    assigned: Plain, pending: Plain, state: MemberState, epoch: int, target: Plain, around: Around
) -> None:
    own = {topic_id: dict.fromkeys(indexes, 5) for topic_id, indexes in assigned.items()}
    revoked = {
        topic_id: dict.fromkeys(indexes - assigned.get(topic_id, set()), 5) for topic_id, indexes in pending.items()
    }
    current = CurrentAssignment(5, 5, state, own, revoked if state is UNREVOKED else {})
    after = step(current, epoch, target, around)
    for topic_id in (A, B):
        has, had = after.assigned.get(topic_id, {}), current.assigned.get(topic_id, {})
        others = {one for one in around.taken.get(topic_id, set()) if current.epoch_of(topic_id, one) is None}
        assert not others & has.keys()
        assert not has.keys() & after.pending_revocation.get(topic_id, {}).keys()
        says = None if around.owned is None else around.owned.get(topic_id, set())
        for partition in had.keys() | current.pending_revocation.get(topic_id, {}).keys():
            is_forgotten = after.epoch_of(topic_id, partition) is None
            assert not is_forgotten or (says is not None and partition not in says)
        for partition, since in has.items():
            assert since == had.get(partition, epoch)
    assert after.member_epoch in (5, epoch)
    assert after.member_epoch >= current.member_epoch
    # A static member that left for a while may be unrevoked without anything to give up.
    if bool(current.pending_revocation) == (state is UNREVOKED):
        assert bool(after.pending_revocation) == (after.state is UNREVOKED)
