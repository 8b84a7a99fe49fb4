"""Who leads what, by load."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.actions.partitions import Partition, Place
from kpybroker.client.actions.placement.balance import TOLERANCE, Balance, balance

Cases = tuple[dict[Place, Partition], dict[Place, float], list[int]]


@st.composite
def cases(draw: st.DrawFn) -> Cases:
    """Partitions with replicas, one of which leads or none, and what is written to them; the brokers that are up."""
    brokers = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5, unique=True))
    partitions = {}
    for number in range(draw(st.integers(0, 12))):
        replicas = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
        leader = draw(st.none() | st.sampled_from(replicas))
        partitions["t", number] = Partition("t", number, leader, replicas, replicas)
    loads = {place: float(draw(st.integers(0, 1000))) for place in partitions if draw(st.booleans())}
    return partitions, loads, brokers


def leaders(case: Cases, found: Balance) -> Mapping[Place, int | None]:
    changed = {one.partition.place: one.leader for one in found.changes}
    return {place: changed.get(place, one.leader) for place, one in case[0].items()}


@given(cases(), st.booleans())
def test_the_worst_broker_has_less_and_nothing_else_is_lost(case: Cases, copies: bool) -> None:
    partitions, loads, brokers = case
    found = balance(partitions, loads, brokers, copies=copies)
    assert max(found.after.values()) <= max(found.before.values())
    for held, led in (
        (found.before, {place: one.leader for place, one in partitions.items()}),
        (found.after, leaders(case, found)),
    ):
        for broker in brokers:
            assert abs(held[broker] - sum(loads.get(p, 0.0) for p, leader in led.items() if leader == broker)) < 1e-6
    for change in found.changes:
        one = change.partition
        assert one.leader != change.leader == change.replicas[0]
        assert change.leader in brokers
        assert loads[one.place] > 0
        assert len(set(change.replicas)) == len(change.replicas) == len(one.replicas)
        assert copies or not change.is_copied
        kept = set(one.replicas) - ({one.leader} if change.is_copied else set())
        assert kept <= set(change.replicas)


def one_each(leaders_of: list[int], replicas: list[int]) -> dict[Place, Partition]:
    return {
        ("t", number): Partition("t", number, leader, replicas, replicas) for number, leader in enumerate(leaders_of)
    }


def test_load_counts_and_not_the_number_of_partitions() -> None:
    partitions = one_each([0] * 8 + [1] * 8, [0, 1])
    loads = {("t", number): 100.0 if number < 4 else 0.0 for number in range(16)}
    found = balance(partitions, loads, [0, 1], copies=False)
    assert found.before == {0: 400.0, 1: 0.0}
    assert found.after == {0: 200.0, 1: 200.0}
    assert len(found.changes) == 2


def test_one_large_partition_is_changed_rather_than_many_small_ones() -> None:
    partitions = one_each([0] * 41, [0, 1])
    loads = {("t", 0): 60.0, **{("t", number): 1.0 for number in range(1, 41)}}
    (first, *rest) = balance(partitions, loads, [0, 1], copies=False).changes
    assert first.partition.number == 0
    assert len(rest) <= 5


def test_without_copies_a_leader_is_a_replica() -> None:
    partitions = one_each([0, 0], [0])
    loads = {("t", 0): 10.0, ("t", 1): 10.0}
    assert balance(partitions, loads, [0, 1], copies=False).changes == []
    (change,) = balance(partitions, loads, [0, 1], copies=True).changes
    assert (change.leader, change.replicas, change.is_copied) == (1, [1], True)


def test_what_is_nearly_even_stays() -> None:
    partitions = one_each([0] * 52 + [1] * 48, [0, 1])
    loads = dict.fromkeys(partitions, 1.0)
    assert balance(partitions, loads, [0, 1], copies=True).changes == []


def test_one_partition_that_is_everything_stays() -> None:
    partitions = one_each([0, 0], [0, 1])
    assert balance(partitions, {("t", 0): 100.0, ("t", 1): 0.5}, [0, 1], copies=True).changes == []


def test_ten_thousand_partitions_end_within_the_tolerance() -> None:
    partitions = one_each([0] * 10_000, [0, 1, 2])
    loads = {place: float(1 + place[1] % 97) for place in partitions}
    found = balance(partitions, loads, [0, 1, 2], copies=False)
    mean = sum(loads.values()) / 3
    assert max(found.after.values()) <= mean * (1 + TOLERANCE)
