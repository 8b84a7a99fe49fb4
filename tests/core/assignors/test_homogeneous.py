"""Cases of Kafka's UniformHomogeneousAssignmentBuilderTest, and what must hold for every such group."""

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
    random_groups,
    topic,
    topics,
)


@pytest.mark.parametrize(
    ("group", "counts", "shares"),
    [
        pytest.param({"A": ""}, {"1": 3}, {"A": ""}, id="no subscription"),
        pytest.param({"A": "2"}, {"1": 3}, {"A": ""}, id="a topic that does not exist"),
        pytest.param({}, {"1": 3}, {}, id="no members"),
        pytest.param({"A": "1 3", "B": "1 3"}, {"1": 3, "3": 2}, {"A": "1:0,1", "B": "1:2 3:0,1"}, id="first"),
        pytest.param(
            {"A": "3", "B": "3", "C": "3"},
            {"3": 2},
            {"A": "", "B": "3:0", "C": "3:1"},
            id="few partitions",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,1 2:0,1", "B": "1 2 | 1:2 2:2"},
            {"1": 3, "2": 3},
            {"A": "1:0,1 2:0", "B": "1:2 2:1,2"},
            id="unbalanced before",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,2 2:0", "B": "1 2 | 1:1 2:1,2"},
            {"1": 6, "2": 5},
            {"A": "1:0,2,3,4 2:0", "B": "1:1,5 2:1,2,3,4"},
            id="partitions are added",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,2 2:0", "B": "1 2 | 1:1 2:1,2", "C": "1 2"},
            {"1": 3, "2": 3},
            {"A": "1:0,2", "B": "1:1 2:1", "C": "2:0,2"},
            id="a member joins",
        ),
        pytest.param(
            {"A": "1 2 | 1:0 2:0", "B": "1 2 | 1:1 2:1"},
            {"1": 3, "2": 3},
            {"A": "1:0,2 2:0", "B": "1:1 2:1,2"},
            id="a member has left",
        ),
        pytest.param(
            {"A": "2 | 1:0 2:0", "B": "2 | 1:1 2:1"},
            {"1": 2, "2": 2},
            {"A": "2:0", "B": "2:1"},
            id="topic dropped",
        ),
        pytest.param(
            {"A": "1 | 1:0,1", "B": "1 | 1:1,2"}, {"1": 3}, {"A": "1:0,1", "B": "1:2"}, id="a partition with two owners"
        ),
        pytest.param(
            {"A": "1 | 1:0", "B": "1 | 1:1,2"}, {"1": 3}, {"A": "1:0", "B": "1:1,2"}, id="who has one more, keeps it"
        ),
    ],
)
def test_cases(group: dict[str, str], counts: dict[str, int], shares: dict[str, str]) -> None:
    assert assigned(assign_uniformly, members(**group), counts) == shares


@given(random_groups(same_subscription=True))
def test_whole_even_and_with_the_fewest_moves(case: tuple[Members, Topics]) -> None:
    """No division as even leaves more partitions where they are."""
    group, counts = case
    assignment = run_to_end(assign_uniformly(group, counts))
    check_valid(group, counts, assignment)
    loads = list(map(load, assignment.values()))
    assert max(loads) - min(loads) <= 1
    assert kept(group, assignment) == most_kept(group, counts)


def most_kept(group: Members, counts: Topics) -> int:
    """Each member keeps up to the quota; those with more keep one more, as far as there are partitions over quota."""
    subscribed = {key: counts[key] for key in next(iter(group.values())).topics if key in counts}
    quota, extra = divmod(sum(subscribed.values()), len(group))
    usable = [
        sum(partition < subscribed.get(key, 0) for key, partitions in each.owned.items() for partition in partitions)
        for each in group.values()
    ]
    return sum(min(each, quota) for each in usable) + min(extra, sum(each > quota for each in usable))


@given(random_groups(same_subscription=True))
def test_a_settled_group_gets_the_very_same_objects(case: tuple[Members, Topics]) -> None:
    check_settled(assign_uniformly, *case)


def test_the_order_of_members_does_not_count() -> None:
    group = members(A="1 2 3", B="1 2 3", C="1 2 3")
    turned = {member_id: group[member_id] for member_id in reversed(list(group))}
    counts = topics({"1": 2, "2": 5, "3": 7})
    assert run_to_end(assign_uniformly(group, counts)) == run_to_end(assign_uniformly(turned, counts))


def test_others_run_between_slices() -> None:
    group = {f"m{number:05}": Member(topics=frozenset((topic("1"),))) for number in range(3000)}
    assert len(list(assign_uniformly(group, topics({"1": 6000})))) > 5
