"""Cases of Kafka's UniformHeterogeneousAssignmentBuilderTest, and what must hold for every group.

Of members with the same load the first gets the next partition; Kafka prefers the one that had fewer before.
"""

from __future__ import annotations

import pytest
from hypothesis import given

from kpybroker.core.assignors.uniform_assignor import assign_uniformly
from kpybroker.core.assignors.values import Member, Members, Topics, run_to_end
from tests.core.assignors.groups import (
    assigned,
    check_settled,
    check_valid,
    kept,
    load,
    members,
    owning,
    random_groups,
    topic,
    topics,
    unbalanced,
)


@pytest.mark.parametrize(
    ("group", "counts", "shares"),
    [
        pytest.param({"A": "", "B": "2"}, {"1": 3}, {"A": "", "B": ""}, id="nothing that exists"),
        pytest.param({"A": "1", "B": ""}, {"1": 3}, {"A": "1:0,1,2", "B": ""}, id="one without a subscription"),
        pytest.param(
            {"A": "1 3", "B": "3"}, {"1": 3, "3": 6}, {"A": "1:0,1,2 3:3,5", "B": "3:0,1,2,4"}, id="first assignment"
        ),
        pytest.param(
            {"A": "3", "B": "3", "C": "1"},
            {"1": 2, "3": 1},
            {"A": "3:0", "B": "", "C": "1:0,1"},
            id="more members than partitions",
        ),
        pytest.param(
            {"A": "1 | 1:0,1,2", "B": "1 2 | 1:3 2:0", "C": "1 2 3 | 1:4,5 2:1,2,3 3:0,1,2,3"},
            {"1": 6, "2": 4, "3": 4},
            {"A": "1:0,1,2,5", "B": "1:3 2:0,1,2,3", "C": "1:4 3:0,1,2,3"},
            id="unbalanced before",
        ),
        pytest.param(
            {"A": "1 3 | 1:0,1,2,3 3:0,1", "B": "1 2 3 4 | 2:0,1,2 4:0,1,2"},
            {"1": 6, "2": 5, "3": 3, "4": 3},
            {"A": "1:0,1,2,3,4,5 3:0,1,2", "B": "2:0,1,2,3,4 4:0,1,2"},
            id="partitions are added",
        ),
        pytest.param(
            {"A": "1 | 1:0,2 2:0", "B": "1 2 | 1:1 2:1,2", "C": "1 2"},
            {"1": 6, "2": 7},
            {"A": "1:0,2,3,4,5", "B": "1:1 2:1,2,5", "C": "2:0,3,4,6"},
            id="a member joins and partitions are added",
        ),
        pytest.param(
            {"A": "1 3 | 1:0,1,2 3:0,1", "B": "2 | 2:3,4,5,6"},
            {"1": 3, "2": 8, "3": 3},
            {"A": "1:0,1,2 3:0,1,2", "B": "2:0,1,2,3,4,5,6,7"},
            id="a member has left",
        ),
        pytest.param(
            {"A": "1 | 1:0,2 2:1,3", "B": "1 2 | 1:1 2:0,2,4"},
            {"1": 3, "2": 5},
            {"A": "1:0,1,2", "B": "2:0,1,2,3,4"},
            id="a subscription is removed",
        ),
    ],
)
def test_cases(group: dict[str, str], counts: dict[str, int], shares: dict[str, str]) -> None:
    assert assigned(assign_uniformly, members(**group), counts) == shares


@given(random_groups())
def test_whole_and_no_single_move_would_improve_the_balance(case: tuple[Members, Topics]) -> None:
    group, counts = case
    assignment = run_to_end(assign_uniformly(group, counts))
    check_valid(group, counts, assignment)
    assert unbalanced(group, assignment) == []


@given(random_groups())
def test_a_settled_group_gets_the_very_same_objects(case: tuple[Members, Topics]) -> None:
    check_settled(assign_uniformly, *case)


@given(random_groups())
def test_what_is_balanced_stays_when_partitions_are_added_that_keep_it_so(case: tuple[Members, Topics]) -> None:
    """A topic that only one member may read, and no one else has fewer partitions than it, moves nothing else."""
    group, counts = case
    assignment = run_to_end(assign_uniformly(group, counts))
    settled = owning(group, assignment)
    least = min(settled, key=lambda member_id: load(assignment[member_id]))
    settled[least] = Member(topics=settled[least].topics | {topic("z")}, owned=settled[least].owned)
    again = run_to_end(assign_uniformly(settled, {**counts, topic("z"): 1}))
    assert kept(settled, again) == sum(map(load, assignment.values()))


@given(random_groups())
def test_even_where_the_subscribers_of_each_topic_have_one_subscription(case: tuple[Members, Topics]) -> None:
    """Two cohorts without a common topic: within each the loads differ by one at most."""
    group, counts = case
    halves = list(group)[::2], list(group)[1::2]
    odd, even = frozenset(list(counts)[::2]), frozenset(list(counts)[1::2])
    apart = {
        **{member_id: Member(topics=even, owned=group[member_id].owned) for member_id in halves[0]},
        **{member_id: Member(topics=odd, owned=group[member_id].owned) for member_id in halves[1]},
    }
    assignment = run_to_end(assign_uniformly(apart, counts))
    for half in halves:
        loads = [load(assignment[member_id]) for member_id in half]
        assert max(loads, default=0) - min(loads, default=0) <= 1


def test_others_run_between_slices() -> None:
    subscriptions = frozenset((topic("1"),)), frozenset((topic("1"), topic("2")))
    group = {f"m{number:05}": Member(topics=subscriptions[number % 2]) for number in range(3000)}
    assert len(list(assign_uniformly(group, topics({"1": 6000, "2": 3000})))) > 20
