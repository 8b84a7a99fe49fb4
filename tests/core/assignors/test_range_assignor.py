"""Cases of Kafka's RangeAssignorTest, and what must hold for every group."""

from __future__ import annotations

import pytest
from hypothesis import given

from kpybroker.core.assignors.range_assignor import assign_ranges
from kpybroker.core.assignors.values import Member, MemberId, Members, Topics, run_to_end
from tests.core.assignors.groups import assigned, check_valid, member, members, owning, random_groups, topics


@pytest.mark.parametrize(
    ("group", "counts", "shares"),
    [
        pytest.param({"A": ""}, {"1": 3}, {"A": ""}, id="no subscription"),
        pytest.param({"A": "2"}, {"1": 3}, {"A": ""}, id="a topic that does not exist"),
        pytest.param({}, {"1": 3}, {}, id="no members"),
        pytest.param(
            {"A": "1 3", "B": "1 3"}, {"1": 3, "3": 2}, {"A": "1:0,1 3:0", "B": "1:2 3:1"}, id="two members, two topics"
        ),
        pytest.param(
            {"A": "1 2", "B": "3", "C": "2 3"},
            {"1": 3, "2": 3, "3": 2},
            {"A": "1:0,1,2 2:0,1", "B": "3:0", "C": "2:2 3:1"},
            id="different subscriptions",
        ),
        pytest.param(
            {"A": "1 3", "B": "1 3", "C": "1 3"},
            {"1": 3, "3": 2},
            {"A": "1:0 3:0", "B": "1:1 3:1", "C": "1:2"},
            id="more members than partitions",
        ),
        pytest.param(
            {"A": "1 2 | 1:0 2:0", "B": "1 2 | 1:1 2:1", "C": "1 2"},
            {"1": 2, "2": 2},
            {"A": "1:0 2:0", "B": "1:1 2:1", "C": ""},
            id="one member too many joins",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,1 2:0,1", "B": "1 2 | 1:2 2:2"},
            {"1": 4, "2": 4},
            {"A": "1:0,1 2:0,1", "B": "1:2,3 2:2,3"},
            id="a partition is added",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,1 2:0,1", "B": "1 2 | 1:2 2:2", "C": "1 2"},
            {"1": 3, "2": 3},
            {"A": "1:0 2:0", "B": "1:1 2:1", "C": "1:2 2:2"},
            id="a member joins",
        ),
        pytest.param(
            {"A": "1 2 | 1:0,1 2:0,1", "B": "1 2 | 1:2 2:2", "C": "1"},
            {"1": 4, "2": 4},
            {"A": "1:0,1 2:0,1", "B": "1:2 2:2,3", "C": "1:3"},
            id="a member joins and a partition is added",
        ),
        pytest.param({"B": "1 2 | 1:2 2:2"}, {"1": 3, "2": 3}, {"B": "1:0,1,2 2:0,1,2"}, id="a member leaves"),
        pytest.param(
            {"A": "2 | 1:0 2:0", "B": "1 2 | 1:1 2:1", "C": "1 2 | 1:2 2:2"},
            {"1": 3, "2": 3},
            {"A": "2:0", "B": "1:0,1 2:1", "C": "1:2 2:2"},
            id="a subscription is removed",
        ),
    ],
)
def test_cases(group: dict[str, str], counts: dict[str, int], shares: dict[str, str]) -> None:
    assert assigned(assign_ranges, members(**group), counts) == shares


def test_a_static_member_keeps_its_ranges_under_another_member_id() -> None:
    before = assigned(assign_ranges, {"a": member("1", "i1"), "b": member("1", "i2")}, {"1": 3})
    after = assigned(assign_ranges, {"z": member("1", "i1"), "b": member("1", "i2")}, {"1": 3})
    assert before == {"a": "1:0,1", "b": "1:2"}
    assert after == {"z": "1:0,1", "b": "1:2"}


def test_static_members_are_before_the_others() -> None:
    group = {"a": member("1"), "b": member("1", "i2"), "c": member("1", "i1")}
    assert assigned(assign_ranges, group, {"1": 5}) == {"c": "1:0,1", "b": "1:2,3", "a": "1:4"}


@given(random_groups())
def test_whole_and_in_contiguous_ranges(case: tuple[Members, Topics]) -> None:
    """By the definition: quota and one more for the first, in the order of instance ids, then of member ids."""
    group, counts = case
    assignment = run_to_end(assign_ranges(group, counts))
    check_valid(group, counts, assignment)
    for key, count in counts.items():
        start = 0
        takers = sorted((each for each in group if key in group[each].topics), key=lambda each: _order(group, each))
        for number, taker in enumerate(takers):
            end = start + count // len(takers) + (number < count % len(takers))
            assert assignment[taker].get(key, frozenset()) == frozenset(range(start, end))
            start = end


def _order(group: Members, member_id: MemberId) -> tuple[bool, str]:
    instance_id = group[member_id].instance_id
    return (instance_id is None, instance_id or member_id)


@given(random_groups(same_subscription=True))
def test_topics_of_one_size_are_co_partitioned(case: tuple[Members, Topics]) -> None:
    group, counts = case
    assignment = run_to_end(assign_ranges(group, dict.fromkeys(counts, 7)))
    for share in assignment.values():
        assert len(set(share.values())) <= 1


@given(random_groups())
def test_a_settled_group_gets_the_very_same_objects(case: tuple[Members, Topics]) -> None:
    group, counts = case
    settled = owning(group, run_to_end(assign_ranges(group, counts)))
    again = run_to_end(assign_ranges(settled, counts))
    assert all(again[member_id] is each.owned for member_id, each in settled.items())


def test_others_run_between_slices() -> None:
    group = {f"m{number:05}": Member(topics=frozenset(topics({"1": 0}))) for number in range(3000)}
    assert len(list(assign_ranges(group, topics({"1": 6000})))) > 5
