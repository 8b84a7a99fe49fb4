"""The budget of clients' state: three limits, and nothing is forgotten or counted twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.budget import UNOWNED, Owner, StateBudget, StateLimits

ALICE, BOB = Owner("User:alice"), Owner("User:bob")
HERE, THERE = Owner(address="10.0.0.1"), Owner(address="10.0.0.2")
LIMITS = StateLimits(total=100, address=30, principal=60)


@pytest.mark.parametrize(("owner", "most"), [(HERE, 30), (ALICE, 60)])
def test_an_owner_gets_what_one_of_its_kind_may_have(owner: Owner, most: int) -> None:
    budget = StateBudget(LIMITS)
    assert budget.has_room(owner, most)
    assert not budget.has_room(owner, most + 1)
    budget.add(owner, most)
    assert not budget.has_room(owner, 1)
    assert budget.has_room(owner, 0)  # what does not grow fits always
    assert budget.has_room(THERE, 30)


def test_all_together_get_no_more_than_the_total() -> None:
    budget = StateBudget(LIMITS)
    budget.add(ALICE, 60)
    budget.add(BOB, 40)
    assert not budget.has_room(HERE, 1)
    budget.add(BOB, -10)
    assert budget.has_room(HERE, 10)


def test_what_was_in_a_log_has_no_owner_and_does_not_count() -> None:
    budget = StateBudget(LIMITS)
    budget.add(UNOWNED, 10**9)
    assert (budget.total, budget.held(UNOWNED)) == (0, 0)
    assert budget.has_room(ALICE, 60)


def test_a_refusal_is_reported_with_who_asked_for_how_much() -> None:
    refused: list[tuple[Owner, int]] = []
    budget = StateBudget(LIMITS, lambda owner, size: refused.append((owner, size)))
    budget.has_room(HERE, 31)
    budget.would_fit(HERE, 31)
    assert refused == [(HERE, 31)]


@given(st.lists(st.tuples(st.sampled_from([ALICE, BOB, HERE]), st.integers(1, 50)), max_size=30))
def test_the_total_is_the_sum_of_what_is_held(changes: list[tuple[Owner, int]]) -> None:
    budget = StateBudget()
    for owner, size in changes:
        budget.add(owner, size)
    assert budget.total == sum(size for _, size in changes)
    for owner, size in changes:
        budget.add(owner, -size)
    assert (budget.total, budget.held(ALICE)) == (0, 0)
