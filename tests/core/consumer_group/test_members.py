"""The values of a member."""

from __future__ import annotations

import pytest

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.members import CurrentAssignment, MemberState, is_subset, without_epochs

A, B = b"a" * 16, b"b" * 16


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        (None, False),
        ({}, True),
        ({A: frozenset((1,))}, True),
        ({A: frozenset((1, 2))}, True),
        ({A: frozenset((1, 3))}, False),
        ({B: frozenset((1,))}, False),
        ({B: frozenset()}, False),  # as in Kafka
    ],
)
def test_what_a_member_may_own_after_a_lost_response(owned: Partitions | None, expected: bool) -> None:
    assert is_subset(owned, {A: {1: 5, 2: 6}}) is expected


def test_the_epoch_of_a_partition_is_found_also_when_it_must_be_given_up() -> None:
    current = CurrentAssignment(7, 6, MemberState.UNREVOKED_PARTITIONS, {A: {1: 5}}, {A: {2: 0}})
    assert [current.epoch_of(A, partition) for partition in (1, 2, 3)] == [5, 0, None]
    assert current.epoch_of(B, 1) is None


def test_reconciled_is_stable_in_that_epoch() -> None:
    assert CurrentAssignment(7, 6).is_reconciled_to(7)
    assert not CurrentAssignment(7, 6).is_reconciled_to(8)
    assert not CurrentAssignment(7, 6, MemberState.UNRELEASED_PARTITIONS).is_reconciled_to(7)


def test_states_that_are_not_known() -> None:
    assert MemberState(3) is MemberState.UNKNOWN
    assert MemberState(2) is MemberState.UNRELEASED_PARTITIONS


def test_partitions_without_their_epochs() -> None:
    assert without_epochs({A: {1: 5, 2: 6}}) == {A: frozenset((1, 2))}
