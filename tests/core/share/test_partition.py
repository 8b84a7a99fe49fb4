"""What the scenarios cannot say: settings that change, renewals that are off, states that contradict themselves."""

from __future__ import annotations

import pytest

from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.values import (
    Acknowledgement,
    Acquired,
    Fetched,
    FetchedBatch,
    PersistedState,
    ShareSettings,
    client_error,
)
from kpybroker.core.share_coordinator.values import StateBatch
from kpybroker.wire.errors import ErrorCode, KafkaError

TEN = Fetched(0, [FetchedBatch(0, 9)])


@pytest.mark.parametrize("batch", [StateBatch(2, 4, 0, 1), StateBatch(7, 6, 0, 1)])
def test_a_state_below_its_start_or_turned_around_is_refused(batch: StateBatch) -> None:
    with pytest.raises(KafkaError) as refused:
        SharePartition(PersistedState(1, 5, [batch]), ShareSettings())
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_renewals_may_be_off() -> None:
    partition = SharePartition(PersistedState(1, 0), ShareSettings(renew_acknowledge_enabled=False))
    partition.acquire("a", TEN, 10, 10, False, 0.0)
    outcome = partition.acknowledge("a", [Acknowledgement(0, 3, [1]), Acknowledgement(4, 9, [4])], 1.0)
    assert (outcome.error, outcome.write) == (ErrorCode.INVALID_RECORD_STATE, None)
    assert partition.acknowledge("a", [Acknowledgement(0, 9, [1])], 1.0).write is not None


@pytest.mark.parametrize(
    "again", [Acknowledgement(3, 5, [1]), Acknowledgement(1, 2, [2]), Acknowledgement(2, 9, [1] * 8)]
)
def test_a_refused_request_that_names_records_twice_changes_none_of_them(again: Acknowledgement) -> None:
    """Next to Kafka 4.3.1: `sg-wrong-overlapping`. What was cut and not reverted was with no one, for good."""
    partition = SharePartition(PersistedState(1, 0), ShareSettings())
    partition.acquire("a", TEN, 10, 10, False, 0.0)
    outcome = partition.acknowledge("a", [Acknowledgement(0, 3, [1]), again], 1.0)
    assert (outcome.error, outcome.write) == (ErrorCode.INVALID_RECORD_STATE, None)
    write = partition.acknowledge("a", [Acknowledgement(0, 9, [1])], 1.0).write
    assert write is not None
    assert (write.batches, write.delivery_complete_count) == ((StateBatch(0, 9, 2, 1),), 10)
    partition.written(write, ErrorCode.NONE, 1.0)
    assert partition.start_offset == 10


def test_settings_count_from_when_they_change() -> None:
    """A lock keeps the duration that it began with; the limits of deliveries and locks count at once."""
    partition = SharePartition(PersistedState(1, 0), ShareSettings(record_lock_duration_ms=30_000))
    assert partition.next_deadline is None
    partition.acquire("a", TEN, 10, 10, False, 0.0)
    partition.settings = ShareSettings(15_000, delivery_count_limit=1, partition_max_record_locks=10)
    assert not partition.can_acquire()
    assert partition.next_deadline == 30.0
    assert partition.expire(29.0).write is None
    write = partition.expire(30.0).write
    assert write is not None
    assert write.batches == (StateBatch(0, 9, 4, 1),)
    assert partition.written(write, ErrorCode.NONE, 30.0).wakes
    assert partition.start_offset == 10
    assert partition.next_deadline is None
    assert partition.acquire("a", Fetched(10, [FetchedBatch(10, 10)]), 1, 1, False, 30.0) == [Acquired(10, 10, 1)]
    assert partition.next_deadline == 45.0


def test_waiting_fetches_are_woken_by_what_is_released_and_when_the_start_moves() -> None:
    partition = SharePartition(PersistedState(1, 0), ShareSettings())
    partition.acquire("a", TEN, 10, 10, False, 0.0)
    released = partition.acknowledge("a", [Acknowledgement(5, 9, [2])], 1.0)
    assert released.write is not None
    assert not released.wakes
    assert partition.written(released.write, ErrorCode.NONE, 1.0).wakes
    later = partition.acknowledge("a", [Acknowledgement(1, 4, [1])], 1.0)
    assert later.write is not None
    assert not partition.written(later.write, ErrorCode.NONE, 1.0).wakes
    first = partition.acknowledge("a", [Acknowledgement(0, 0, [1])], 1.0)
    assert first.write is not None
    assert partition.written(first.write, ErrorCode.NONE, 1.0).wakes
    assert partition.expire(60.0).write is None
    partition.acquire("b", TEN, 10, 10, False, 60.0)
    assert partition.expire(90.0).wakes


def test_at_the_limit_with_nothing_but_aborted_records_others_can_still_be_acquired() -> None:
    """Kafka 4.3.1 stops here forever: only the result of a write moves its start offset, and none will come."""
    partition = SharePartition(PersistedState(1, 0), ShareSettings(partition_max_record_locks=10))
    aborted = FetchedBatch(0, 9)
    assert partition.acquire("a", Fetched(0, [aborted], [aborted]), 500, 500, False, 0.0) == []
    assert partition.can_acquire()
    assert partition.next_fetch_offset() == 10
    assert partition.acquire("a", Fetched(10, [FetchedBatch(10, 11)]), 500, 500, False, 0.0) == [Acquired(10, 11, 1)]


def test_a_release_that_failed_below_the_start_of_the_log_makes_nothing_available_there() -> None:
    """Kafka 4.3.1 fetches from below the log's start then, again and again."""
    partition = SharePartition(PersistedState(1, 0), ShareSettings())
    partition.acquire("a", TEN, 10, 10, False, 0.0)
    partition.advance(5)
    released = partition.release_member("a")
    assert released.write is not None
    partition.written(released.write, ErrorCode.COORDINATOR_NOT_AVAILABLE, 30.0)
    assert partition.next_fetch_offset() == 5


def test_records_between_persisted_batches_are_not_looked_for_below_the_start_of_the_log() -> None:
    batches = [StateBatch(5, 9, 0, 1), StateBatch(20, 29, 0, 1)]
    partition = SharePartition(PersistedState(1, 0, batches), ShareSettings())
    assert partition.next_fetch_offset() == 0
    partition.advance(15)
    assert partition.next_fetch_offset() == 15


@pytest.mark.parametrize("error", [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_write_that_was_fenced_is_a_leader_that_is_none(error: ErrorCode) -> None:
    assert client_error(error) is ErrorCode.NOT_LEADER_OR_FOLLOWER
