"""Markers of transactions of version 2, and what their producers may append (KIP-890, part 2)."""

from __future__ import annotations

import pytest

from kpybroker.core.log.producer_append import AppendOrigin
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.log.verification import NO_VERIFICATION
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import TRANSACTIONAL_MASK, BatchHeader
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker

CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION
MAX = 32_767


def append(state: ProducerState, epoch: int, sequence: int, *, offset: int = 0) -> None:
    """A batch of one record in a transaction of producer 1."""
    header = BatchHeader(offset, 49, 0, 2, 0, TRANSACTIONAL_MASK, 0, 10, 10, 1, epoch, sequence, 1)
    info = state.prepare_update(1, CLIENT)
    info.append_data(header)
    state.update(info)


def end(state: ProducerState, epoch: int, *, version: int = 2, origin: AppendOrigin = COORDINATOR) -> bool:
    """Whether there was a transaction to end."""
    info = state.prepare_update(1, origin)
    completed = info.append_marker(EndTransactionMarker(ControlRecordType.COMMIT, 0, 20), epoch, 9, version)
    state.update(info)
    if completed is not None:
        state.complete_txn(completed)
    return completed is not None


def code_of(call: object, *arguments: object, **named: object) -> ErrorCode | None:
    assert callable(call)
    try:
        call(*arguments, **named)
    except KafkaError as error:
        return error.code
    return None


@pytest.fixture
def state() -> ProducerState:
    """Of a partition in which producer 1 has a transaction in epoch 3."""
    state = ProducerState("t-0")
    append(state, 3, 0)
    return state


def test_its_epoch_is_later_than_that_of_the_records(state: ProducerState) -> None:
    for epoch in (2, 3):
        with pytest.raises(KafkaError, match=rf"is {epoch}, which is <= the last seen epoch 3 \(TV2\)") as caught:
            end(state, epoch)
        assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.has_ongoing_transaction(1)
    assert end(state, 4)


def test_before_version_2_it_has_that_of_the_records(state: ProducerState) -> None:
    assert code_of(end, state, 2, version=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(state, 3, version=1)


def test_the_same_again_is_taken_until_something_is_open_in_its_epoch(state: ProducerState) -> None:
    assert end(state, 4)
    assert not end(state, 4)
    assert code_of(end, state, 3) is ErrorCode.INVALID_PRODUCER_EPOCH
    append(state, 4, 0, offset=10)
    assert code_of(end, state, 4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(state, 5)


def test_the_last_epoch_may_end_its_own_transaction() -> None:
    """A producer may have begun one in an epoch that was not meant for it: it would never end."""
    state = ProducerState("t-0")
    append(state, MAX, 0)
    assert end(state, MAX)


def test_a_partition_that_does_not_know_the_producer_takes_any() -> None:
    assert not end(ProducerState("t-0"), 0)


def test_a_follower_takes_what_its_leader_wrote(state: ProducerState) -> None:
    """It does not learn the version, so it has the old rule; what passes the new one passes that."""
    assert end(state, 3, version=0, origin=REPLICATION)


def test_a_producer_that_adds_begins_with_sequence_0() -> None:
    state = ProducerState("t-0")
    state.start_verification(1, 4, 0, 0, adds=True)
    assert code_of(append, state, 0, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    state.start_verification(1, 0, 0, 0, adds=True)
    append(state, 0, 0)
    state.clear_verification(1)
    other = ProducerState("t-0")
    other.start_verification(1, 4, 0, 0)
    append(other, 0, 4)


def test_one_that_adds_to_a_known_partition_continues_its_sequence(state: ProducerState) -> None:
    """Its transaction was ended in a way that kept the epoch, or the verification began too early."""
    state.start_verification(1, 1, 4, 0, adds=True)
    append(state, 3, 1)


def test_a_transaction_of_another_epoch_is_none_that_goes_on(state: ProducerState) -> None:
    assert state.start_verification(1, 1, 3, 0) is NO_VERIFICATION
    assert state.start_verification(1, 0, 4, 0) is not NO_VERIFICATION
    assert code_of(state.start_verification, 1, 1, 2, 0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_what_is_verified_for_a_later_transaction_outlives_a_marker(state: ProducerState) -> None:
    state.start_verification(1, 0, 4, 0, adds=True)
    assert state.is_of_later_transaction(1, 4)
    assert not state.is_of_later_transaction(1, 5)
    assert not state.is_of_later_transaction(2, 4)
