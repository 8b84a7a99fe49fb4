"""Producer state: idempotence, fencing, transactions (ProducerStateManagerTest, ProducerAppendInfo)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.core.log.producer_append import AppendOrigin
from kpybroker.core.log.producer_entries import SEQUENCE_MASK, BatchMetadata, CompletedTxn, ProducerStateEntry
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.log.verification import NO_VERIFICATION
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import TRANSACTIONAL_MASK, BatchHeader
from kpybroker.wire.records.control import ControlRecordType, EndTransactionMarker

CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION


def header(
    offset: int, *, sequence: int, by: tuple[int, int] = (1, 0), count: int = 1, transactional: bool = False
) -> BatchHeader:
    """`by` is the producer: id and epoch."""
    attributes = TRANSACTIONAL_MASK if transactional else 0
    return BatchHeader(offset, 49, 0, 2, 0, attributes, count - 1, 10, 10, *by, sequence, count)


def dated(timestamp: int, batch: BatchHeader) -> BatchHeader:
    return batch._replace(base_timestamp=timestamp, max_timestamp=timestamp)


def append(state: ProducerState, batch: BatchHeader, origin: AppendOrigin = CLIENT) -> None:
    info = state.prepare_update(batch.producer_id, origin)
    info.append_data(batch)
    state.update(info)
    state.map_end_offset = batch.next_offset


def end(
    state: ProducerState,
    offset: int,
    *,
    commit: bool,
    by: tuple[int, int] = (1, 0),
    coordinator_epoch: int = 0,
    origin: AppendOrigin = COORDINATOR,
) -> CompletedTxn | None:
    """A marker for the producer `by`: id and epoch."""
    producer_id, epoch = by
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    info = state.prepare_update(producer_id, origin)
    completed = info.append_marker(EndTransactionMarker(kind, coordinator_epoch, 20), epoch, offset)
    state.update(info)
    if completed is not None:
        state.complete_txn(completed)
    return completed


def refused(state: ProducerState, batch: BatchHeader, origin: AppendOrigin = CLIENT) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        state.prepare_update(batch.producer_id, origin).append_data(batch)
    return caught.value.code


@pytest.fixture
def state() -> ProducerState:
    return ProducerState("t-0")


def test_sequences_follow_each_other(state: ProducerState) -> None:
    append(state, header(0, sequence=0, count=5))
    append(state, header(5, sequence=5))
    assert refused(state, header(6, sequence=7)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(state, header(6, sequence=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(state, header(6, sequence=6))
    assert state.producers[1].last_sequence == 6


def test_sequences_wrap_to_zero(state: ProducerState) -> None:
    append(state, header(0, sequence=SEQUENCE_MASK - 1, count=4))
    assert state.producers[1].last_sequence == 1
    assert state.producers[1].batches[0].first_sequence == SEQUENCE_MASK - 1
    append(state, header(4, sequence=2))
    state = ProducerState("t-0")
    append(state, header(0, sequence=SEQUENCE_MASK))
    assert state.plain_next_entry(header(1, sequence=0)) is None  # left to the complete check
    append(state, header(1, sequence=0))


def test_an_unknown_producer_may_begin_anywhere(state: ProducerState) -> None:
    """KIP-360: its records may be gone by retention."""
    append(state, header(0, sequence=17))
    assert state.producers[1].last_sequence == 17


def test_a_lower_epoch_is_fenced_and_a_higher_one_starts_at_zero(state: ProducerState) -> None:
    append(state, header(0, sequence=0, by=(1, 5)))
    assert refused(state, header(1, sequence=1, by=(1, 4))) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(state, header(1, sequence=1, by=(1, 6))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(state, header(1, sequence=0, by=(1, 6)))
    entry = state.producers[1]
    assert (entry.producer_epoch, len(entry.batches)) == (6, 1)


def test_a_replica_takes_what_its_leader_wrote(state: ProducerState) -> None:
    append(state, header(0, sequence=0, by=(1, 5)))
    append(state, header(1, sequence=44, by=(1, 4)), REPLICATION)


def test_a_coordinator_needs_no_sequence(state: ProducerState) -> None:
    append(state, header(0, sequence=-1), COORDINATOR)
    append(state, header(1, sequence=-1), COORDINATOR)
    assert refused(state, header(2, sequence=-1, by=(1, -1)), COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_last_five_batches_are_known_as_duplicates(state: ProducerState) -> None:
    for number in range(7):
        append(state, dated(100 + number, header(number * 2, sequence=number * 2, count=2)))
    entry = state.producers[1]
    assert len(entry.batches) == 5
    assert entry.find_duplicate(0, 2, 3) is None
    assert entry.find_duplicate(0, 4, 5) == BatchMetadata(5, 5, 1, 102)
    assert entry.find_duplicate(0, 12, 13) == BatchMetadata(13, 13, 1, 106)
    assert entry.find_duplicate(0, 12, 12) is None
    assert entry.find_duplicate(1, 12, 13) is None


def test_a_prepared_update_that_is_not_applied_changes_nothing(state: ProducerState) -> None:
    append(state, header(0, sequence=0))
    info = state.prepare_update(1, CLIENT)
    info.append_data(header(1, sequence=1, transactional=True))
    assert state.producers[1].last_sequence == 0
    assert state.first_unstable_offset is None


def test_a_transaction_is_unstable_until_its_marker_is_replicated(state: ProducerState) -> None:
    append(state, header(0, sequence=0))
    append(state, header(1, sequence=0, by=(2, 0), transactional=True))
    append(state, header(2, sequence=1, by=(2, 0), transactional=True))
    assert (state.first_unstable_offset, state.first_undecided_offset) == (1, 1)
    assert end(state, 3, commit=False, by=(2, 0)) == CompletedTxn(2, 1, 3, True)
    assert (state.first_unstable_offset, state.first_undecided_offset) == (1, None)
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1
    state.on_high_watermark_updated(4)
    assert state.first_unstable_offset is None


def test_the_earliest_of_several_transactions_counts(state: ProducerState) -> None:
    append(state, header(0, sequence=0, transactional=True))
    append(state, header(1, sequence=0, by=(2, 0), transactional=True))
    completed = CompletedTxn(1, 0, 2, True)
    assert state.last_stable_offset_after(completed) == 1
    end(state, 2, commit=True)
    state.on_high_watermark_updated(3)
    assert state.first_unstable_offset == 1
    assert state.last_stable_offset_after(CompletedTxn(2, 1, 3, True)) == 4


def test_transactions_applied_out_of_order_are_kept_in_order(state: ProducerState) -> None:
    """Two producers in one append: one is applied after the other, whichever began first."""
    late, early = state.prepare_update(1, REPLICATION), state.prepare_update(2, REPLICATION)
    late.append_data(header(5, sequence=0, transactional=True))
    early.append_data(header(3, sequence=0, by=(2, 0), transactional=True))
    state.update(late)
    state.update(early)
    assert state.first_undecided_offset == 3


def test_a_marker_without_a_transaction_completes_nothing(state: ProducerState) -> None:
    assert end(state, 0, commit=True) is None
    assert state.producers[1].current_txn_first_offset == -1


def test_a_marker_with_a_higher_epoch_fences_the_producer(state: ProducerState) -> None:
    append(state, header(0, sequence=0, transactional=True))
    end(state, 1, commit=False, by=(1, 1))
    assert refused(state, header(2, sequence=1, transactional=True)) is ErrorCode.INVALID_PRODUCER_EPOCH
    append(state, header(2, sequence=0, by=(1, 1), transactional=True))


def test_a_zombie_coordinator_is_fenced(state: ProducerState) -> None:
    end(state, 0, commit=True, coordinator_epoch=3)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(state, 1, commit=True, coordinator_epoch=2)
    end(state, 1, commit=True, coordinator_epoch=2, origin=REPLICATION)


def test_no_plain_write_within_a_transaction(state: ProducerState) -> None:
    append(state, header(0, sequence=0, transactional=True))
    assert refused(state, header(1, sequence=1)) is ErrorCode.INVALID_TXN_STATE


def test_completing_what_was_not_started_is_an_error() -> None:
    with pytest.raises(ValueError, match="not started"):
        ProducerState("t-0").complete_txn(CompletedTxn(1, 0, 1, True))


def test_idle_producers_expire_but_not_within_a_transaction() -> None:
    state = ProducerState("t-0", producer_id_expiration_ms=100)
    append(state, dated(1000, header(0, sequence=0)))
    append(state, dated(1000, header(1, sequence=0, by=(2, 0), transactional=True)))
    append(state, dated(1001, header(2, sequence=0, by=(3, 0))))
    state.start_verification(7, 0, 0, 1000)
    state.remove_expired(1100)
    assert set(state.producers) == {2, 3}
    assert state.verifications == {}


def test_a_hanging_transaction_is_late(state: ProducerState) -> None:
    assert not state.has_late_transaction(10**9, 1000)
    append(state, dated(1000, header(0, sequence=0, transactional=True)))
    assert not state.has_late_transaction(1000 + 1000 + 300_000, 1000)
    assert state.has_late_transaction(1001 + 1000 + 300_000, 1000)


def test_verification_guards_belong_to_one_verification(state: ProducerState) -> None:
    """KIP-890."""
    guard = state.start_verification(1, 5, 0, 0)
    assert guard is not NO_VERIFICATION
    assert state.start_verification(1, 3, 0, 0) is guard
    assert state.is_verified(1, guard)
    assert not state.is_verified(1, NO_VERIFICATION)
    assert not state.is_verified(2, guard)
    state.clear_verification(1)
    assert not state.is_verified(1, guard)
    assert state.start_verification(1, 0, 0, 0) is not guard


def test_no_higher_sequence_passes_one_that_is_being_verified(state: ProducerState) -> None:
    state.start_verification(1, 5, 0, 0)
    state.start_verification(1, 3, 0, 0)
    assert refused(state, header(0, sequence=5, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    state.start_verification(1, 9, 1, 0)
    assert state.verifications[1].lowest_sequence == 9
    append(state, header(0, sequence=9, by=(1, 1), transactional=True))
    assert state.start_verification(1, 10, 1, 0) is NO_VERIFICATION


def test_loading_a_snapshot_restores_transactions_and_drops_the_expired() -> None:
    state = ProducerState("t-0", producer_id_expiration_ms=100)
    state.load(
        [
            ProducerStateEntry(1, 0, 0, 1000, 7, [BatchMetadata(3, 9, 0, 1000)]),
            ProducerStateEntry(2, 0, 0, 1000, 4, [BatchMetadata(3, 8, 0, 1000)]),
            ProducerStateEntry(3, 0, 0, 1000),
        ],
        10,
        1200,
    )
    assert set(state.producers) == {1, 2}
    assert state.first_undecided_offset == 4
    assert state.map_end_offset == 10


def test_the_log_start_moves_the_end_and_forgets_replicated_transactions(state: ProducerState) -> None:
    append(state, header(0, sequence=0, transactional=True))
    end(state, 1, commit=True)
    state.on_log_start_offset_incremented(5)
    assert (state.first_unstable_offset, state.map_end_offset, state.is_empty) == (None, 5, False)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 3)), max_size=40))
def test_the_shortcut_agrees_with_the_complete_check(batches: list[tuple[int, int, int]]) -> None:
    """A batch that `plain_next_entry` accepts passes the complete check too, and is no duplicate."""
    state = ProducerState("t-0")
    offset = 0
    for epoch, sequence, count in batches:
        batch = header(offset, sequence=sequence, by=(1, epoch), count=count)
        entry = state.producers.get(1)
        duplicate = entry and entry.find_duplicate(epoch, sequence, batch.last_sequence)
        plain = state.plain_next_entry(batch)
        try:
            append(state, batch)
        except KafkaError:
            assert plain is None
            continue
        if plain is not None:
            assert not duplicate
        offset += count
