"""Replicas land where Kafka's AdminUtils puts them. The expected lists were printed by Kafka 3.9.1's own class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.placement import BrokerMetadata, assign_replicas_to_brokers, rack_alternated
from kpybroker.wire.errors import ErrorCode, KafkaError

MIXED = ("rack1", "rack3", "rack3", "rack2", "rack2", "rack1")

# racks of brokers 0.., partitions, replication factor, fixed start index, first partition id, Kafka's result
CASES = [
    (
        (None,) * 5,
        12,
        3,
        3,
        0,
        "3,2,4 4,3,0 0,4,1 1,0,2 2,1,3 3,4,0 4,0,1 0,1,2 1,2,3 2,3,4 3,0,1 4,1,2",
    ),
    ((None,) * 5, 10, 3, 0, 0, "0,1,2 1,2,3 2,3,4 3,4,0 4,0,1 0,2,3 1,3,4 2,4,0 3,0,1 4,1,2"),
    ((None,) * 3, 7, 3, 1, 4, "2,1,0 0,2,1 1,2,0 2,0,1 0,1,2 1,0,2 2,1,0"),
    (MIXED, 8, 3, 0, 0, "0,3,1 3,1,5 1,5,4 5,4,2 4,2,0 2,0,3 0,4,2 3,2,0"),
    (MIXED, 7, 4, 2, 5, "3,5,2,0 1,3,5,4 5,1,4,2 4,5,2,0 2,4,0,3 0,2,3,1 3,0,1,5"),
    (("a", "a", "a", "b"), 6, 2, 0, 0, "0,3 3,1 1,3 2,3 0,3 3,0"),
    (
        ("a", "a", "b", "b", "c", "c", "c"),
        9,
        5,
        4,
        0,
        "3,5,0,2,4 5,0,2,4,1 6,0,2,4,1 0,2,4,1,3 2,4,1,3,5 4,1,3,5,6 1,3,5,6,0 3,4,1,5,6 5,1,3,6,0",
    ),
]


def brokers_of(racks: tuple[str | None, ...]) -> list[BrokerMetadata]:
    return [BrokerMetadata(broker_id, rack) for broker_id, rack in enumerate(racks)]


@pytest.mark.parametrize(("racks", "count", "factor", "start", "first", "expected"), CASES)
def test_as_kafka(
    racks: tuple[str | None, ...], count: int, factor: int, start: int, first: int, expected: str
) -> None:
    assignment = assign_replicas_to_brokers(
        brokers_of(racks), count, factor, start_index=start, replica_shift=start, start_partition_id=first
    )
    assert " ".join(",".join(map(str, assignment[first + i])) for i in range(count)) == expected
    assert list(assignment) == list(range(first, first + count))


def test_racks_alternate() -> None:
    assert rack_alternated(dict(enumerate(MIXED))) == [0, 3, 1, 5, 4, 2]


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    aware=st.booleans(),
    factor=st.integers(1, 8),
    start=st.integers(0, 7),
    shift=st.integers(0, 7),
    count=st.integers(1, 30),
)
def test_no_broker_twice_and_racks_spread(
    racks: list[str], aware: bool, factor: int, start: int, shift: int, count: int
) -> None:
    factor = min(factor, len(racks))
    brokers = brokers_of(tuple(racks) if aware else (None,) * len(racks))
    assignment = assign_replicas_to_brokers(brokers, count, factor, start_index=start, replica_shift=shift)
    for replicas in assignment.values():
        assert len(replicas) == len(set(replicas)) == factor
        if aware:
            assert len({racks[replica] for replica in replicas}) == min(factor, len(set(racks)))


@pytest.mark.parametrize(
    ("count", "factor", "code", "message"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (
            1,
            3,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 3 larger than available brokers: 2.",
        ),
    ],
)
def test_refusals_are_kafkas(count: int, factor: int, code: ErrorCode, message: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        assign_replicas_to_brokers(brokers_of((None, None)), count, factor, start_index=0, replica_shift=0)
    assert (refusal.value.code, refusal.value.message) == (code, message)


def test_racks_on_some_brokers_only_are_refused() -> None:
    with pytest.raises(KafkaError, match="Not all brokers have rack information"):
        assign_replicas_to_brokers(brokers_of(("a", None)), 1, 1, start_index=0, replica_shift=0)
