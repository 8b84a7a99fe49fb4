"""Cases of Kafka's SimpleAssignorTest, and what must hold of every share group's assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.assignors.simple_assignor import assign_simply
from kpybroker.core.assignors.values import Assignment, Member, MemberId, Members, TopicId, run_to_end
from tests.core.assignors.groups import load, members, owning, topic

Assignable = dict[TopicId, frozenset[int]]


def assignable(counts: Mapping[str, int]) -> Assignable:
    return {topic(digit): frozenset(range(count)) for digit, count in counts.items()}


def sharing(assignment: Assignment) -> Counter[tuple[TopicId, int]]:
    """How many members have each partition."""
    return Counter((key, index) for share in assignment.values() for key, indexes in share.items() for index in indexes)


@st.composite
def share_groups(draw: st.DrawFn, same_subscription: bool = False) -> tuple[dict[MemberId, Member], Assignable]:
    """Members that own anything, several of them the same."""
    digits = [str(digit) for digit in range(draw(st.integers(1, 3)))]
    partitions = {
        topic(digit): draw(st.frozensets(st.integers(0, 5), max_size=6 if draw(st.booleans()) else 1))
        for digit in digits
    }
    subscriptions = st.frozensets(st.sampled_from([*map(topic, digits), topic("x")]))
    one = draw(subscriptions)
    owned = st.dictionaries(
        st.sampled_from([*map(topic, digits), topic("y")]), st.frozensets(st.integers(0, 7), min_size=1), max_size=3
    )
    return {
        f"m{number}": Member(None, one if same_subscription else draw(subscriptions), draw(owned))
        for number in range(draw(st.integers(0, 7)))
    }, partitions


@pytest.mark.parametrize(
    ("group", "counts", "loads", "shared"),
    [
        pytest.param({}, {"1": 3}, {}, {}, id="no members"),
        pytest.param({"A": ""}, {"1": 3}, {"A": 0}, {}, id="no subscription"),
        pytest.param({"A": "2"}, {"1": 3}, {"A": 0}, {}, id="nothing of the topic is initialized"),
        pytest.param({"A": "1 3", "B": "1 3"}, {"1": 3, "3": 2}, {"A": 3, "B": 2}, {1: 5}, id="first"),
        pytest.param({"A": "1", "B": "1", "C": "1"}, {"1": 1}, {"A": 1, "B": 1, "C": 1}, {3: 1}, id="one partition"),
        pytest.param(
            {"A": "1", "B": "1", "C": "1"},
            {"1": 2},
            {"A": 2, "B": 1, "C": 1},
            {2: 2},
            id="more members",
        ),
        pytest.param(
            {"A": "1", "B": "2", "C": "1 2"},
            {"1": 2, "2": 2},
            {"A": 1, "B": 1, "C": 2},
            {1: 4},
            id="topic by topic",
        ),
    ],
)
def test_cases(group: dict[str, str], counts: dict[str, int], loads: dict[str, int], shared: dict[int, int]) -> None:
    assignment = run_to_end(assign_simply(members(**group), assignable(counts)))
    assert {member_id: load(share) for member_id, share in assignment.items()} == loads
    assert Counter(sharing(assignment).values()) == shared


@given(share_groups())
def test_valid_and_whole(case: tuple[Members, Assignable]) -> None:
    """Only what is subscribed to and initialized; each such partition has as many members as any of its topic."""
    group, partitions = case
    assignment = run_to_end(assign_simply(group, partitions))
    assert assignment.keys() == group.keys()
    for member_id, share in assignment.items():
        assert share.keys() <= group[member_id].topics
        assert all(indexes and indexes <= partitions[key] for key, indexes in share.items())
    counts = sharing(assignment)
    for key, indexes in partitions.items():
        if any(key in member.topics for member in group.values()):
            assert len({counts[key, index] for index in indexes}) <= 1
            assert all(counts[key, index] for index in indexes)


@given(share_groups(same_subscription=True))
def test_even_where_all_subscribe_to_the_same(case: tuple[Members, Assignable]) -> None:
    """No member has two more than another, and no partition has more members than it takes."""
    group, partitions = case
    assignment = run_to_end(assign_simply(group, partitions))
    loads = [load(share) for share in assignment.values()]
    assert max(loads, default=0) - min(loads, default=0) <= 1
    topics = frozenset[TopicId]().union(*(member.topics for member in group.values())) & partitions.keys()
    total = sum(len(partitions[key]) for key in topics)
    assert set(sharing(assignment).values()) <= {-(-len(group) // total) if total else 0}


@given(share_groups())
def test_settled(case: tuple[Members, Assignable]) -> None:
    """Once the group has its assignment, it gets the very same objects again."""
    group, partitions = case
    settled = owning(group, run_to_end(assign_simply(group, partitions)))
    again = run_to_end(assign_simply(settled, partitions))
    assert all(again[member_id] is each.owned for member_id, each in settled.items())


def test_an_exchange_where_all_with_room_have_the_partition() -> None:
    """A gives up partition 0, which three members have. Only A has room for 1 then, and has it: so B takes it from A's
    part, and gives A partition 0 back. Kafka's leaves A with one partition, and 1 with one member.
    """
    group = members(A="1 | 1:0,1", B="1 | 1:0", C="1 | 1:0")
    assignment = run_to_end(assign_simply(group, assignable({"1": 2})))
    assert {member_id: load(share) for member_id, share in assignment.items()} == {"A": 2, "B": 1, "C": 1}
    assert set(sharing(assignment).values()) == {2}


def test_large_groups_yield() -> None:
    """10 000 partitions and 200 members: in slices."""
    group = {f"m{number:03}": Member(None, frozenset([topic("1")])) for number in range(200)}
    slices = assign_simply(group, assignable({"1": 10_000}))
    assert len(list(slices)) > 10
    assignment = run_to_end(assign_simply(group, assignable({"1": 10_000})))
    assert {load(share) for share in assignment.values()} == {50}
