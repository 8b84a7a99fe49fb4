"""What records in flight cost: little when they were acquired together, and at most 300 bytes each when not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import Acknowledgement, Fetched, FetchedBatch, PersistedState, ShareSettings
from kpybroker.wire.errors import ErrorCode

PARTITIONS = 100
RECORDS_EACH = 100
BYTES_A_RECORD_MAX = 300
FAR = 10**9
"""Offsets that Python has not made already."""


def one_batch_each(offset: int) -> FetchedBatch:
    return FetchedBatch(offset, offset)


def one_batch_for_all(offset: int) -> FetchedBatch:
    return FetchedBatch(FAR, FAR + RECORDS_EACH - 1)


@pytest.mark.parametrize("batch_of", [one_batch_each, one_batch_for_all])
def test_a_record_that_is_acquired_by_itself_costs_at_most_300_bytes(
    batch_of: Callable[[int], FetchedBatch],
) -> None:
    settings, members = ShareSettings(), [f"member-{number:029}" for number in range(10)]
    tracemalloc.start()
    try:
        partitions = [SharePartition(PersistedState(1, FAR), settings) for _ in range(PARTITIONS)]
        for partition in partitions:
            for number in range(RECORDS_EACH):
                offset = partition.next_fetch_offset()
                fetched = Fetched(offset, [batch_of(offset)])
                (row,) = partition.acquire(members[number % 10], fetched, 1, 1, True, float(number))
                assert row == (offset, offset, 1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    bytes_a_record = taken / (PARTITIONS * RECORDS_EACH)
    print(f"{bytes_a_record:.0f} bytes a record")
    assert bytes_a_record <= BYTES_A_RECORD_MAX
    assert all(len(list(partition.runs())) == RECORDS_EACH for partition in partitions)


def test_records_that_are_acquired_together_are_one_run_and_none_when_all_is_accepted() -> None:
    partition = SharePartition(PersistedState(1, 0), ShareSettings())
    partition.acquire("a", Fetched(0, [FetchedBatch(0, 9_999)]), 10_000, 10_000, False, 0.0)
    assert len(list(partition.runs())) == 1
    outcome = partition.acknowledge("a", [Acknowledgement(0, 9_999, [1])], 0.0)
    assert outcome.write is not None
    partition.written(outcome.write, ErrorCode.NONE, 0.0)
    assert list(partition.runs()) == []


def test_acknowledging_one_by_one_leaves_no_more_runs_than_there_are_states() -> None:
    """What is done with and what is not: two runs, however many acknowledgements there were."""
    partition = SharePartition(PersistedState(1, 0), ShareSettings())
    partition.acquire("a", Fetched(0, [FetchedBatch(0, 999)]), 1_000, 1_000, False, 0.0)
    for offset in range(999):
        outcome = partition.acknowledge("a", [Acknowledgement(offset, offset, [1])], 0.0)
        assert outcome.write is not None
        partition.written(outcome.write, ErrorCode.NONE, 0.0)
        assert len(list(partition.runs())) <= 2
    assert partition.start_offset == 999
