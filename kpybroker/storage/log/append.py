"""Appending to a log: the order of checks, the write, and what follows it (UnifiedLog.append).

Nothing of the log changes before everything is checked, and producer state changes only after the bytes are written, so
an append that is refused or fails leaves no trace. A batch that an idempotent producer repeats is acknowledged with the
offsets of the first time before any other check of its producer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.core.log.producer_append import AppendOrigin, ProducerAppendInfo
from kpybroker.core.log.producer_entries import BatchMetadata, CompletedTxn, ProducerStateEntry
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.log.verification import NO_VERIFICATION, VerificationGuard
from kpybroker.storage.disk.errors import failing_takes_offline
from kpybroker.storage.log.recovery import aborted_transactions, complete_transactions, prepare_batch
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.constants import INT32_MAX, NO_TIMESTAMP, UNKNOWN_OFFSET
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.slow_validation import place_at
from kpybroker.wire.records.validate import AppendContext, ValidatedRecords, validate_and_assign, validate_fast

if TYPE_CHECKING:
    from kpybroker.storage.log.log_state import LogState
    from kpybroker.storage.segments.segment import LogSegment

CLIENT = AppendOrigin.CLIENT  # reading an attribute of an enum takes 0.1 µs
COORDINATOR = AppendOrigin.COORDINATOR


class AppendInfo(NamedTuple):
    """The result of an append. Offsets of the records, not of batches; times in milliseconds, -1 for none.

    `duplicate`: nothing was written, the offsets are those of the first time. `flush_required`: `flush.messages` is
    reached, so the acknowledgement waits for a flush job. `rolled`: a segment was rolled; flush it soon.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False
    flush_required: bool = False
    rolled: bool = False
    size: int = 0


class ProducedBatches(NamedTuple):
    """What a client or a coordinator of this broker wants appended, and what is known of it.

    `records` is stamped in place where it is writable. `request_version` is Produce's, None for a coordinator.
    `guard` proves that a transaction was verified (KIP-890). `checked` is the result of validating `records` for
    offset 0, where that was done beforehand (`wire.records.slow_validation`). `transaction_version` is that of the
    transaction which a marker ends.
    """

    records: Buffer
    now_ms: int
    request_version: int | None = None
    origin: AppendOrigin = CLIENT
    guard: VerificationGuard = NO_VERIFICATION
    checked: ValidatedRecords | None = None
    transaction_version: int = 0


class UnexpectedAppendOffsetError(Exception):
    """A leader's batches begin below the follower's log end (UnexpectedAppendOffsetException)."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class ProducerChanges(NamedTuple):
    """What an append will do to the producer state."""

    updates: dict[int, ProducerAppendInfo]
    completed: list[CompletedTxn]


def append_as_leader(log: LogState, produced: ProducedBatches, leader_epoch: int) -> AppendInfo:
    """Append batches, giving them offsets and the leader epoch. Raises KafkaError as Kafka does, and LogDirError."""
    records, now_ms, request_version, origin, guard, checked, transaction_version = produced
    if checked is not None:
        checked = place_at(checked, log.log_end_offset, leader_epoch)
    else:
        base_offset = log.log_end_offset
        checked = validate_fast(records, log.rules, base_offset, leader_epoch, request_version)
        if checked is None:
            call = AppendContext(base_offset, now_ms, leader_epoch, origin is CLIENT, log.partition)
            checked = validate_and_assign(records, log.rules, call, request_version)
    data, header, first_offset, last_offset, max_timestamp, _, _, log_append_time, _ = checked
    if header is None:
        return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, log.log_start_offset)
    changes: ProducerChanges | None = None
    plain: ProducerStateEntry | None = None
    if header.producer_id >= 0:
        producers = log.producers
        if origin is CLIENT:
            plain = producers.plain_next_entry(header)
            duplicate = None if plain is not None else _find_duplicate(producers, header)
            if duplicate is not None:
                return _duplicate_info(log, duplicate)
        if plain is None:
            needed = guard if log.verification_enabled else None
            changes = _check_producers(producers, ((header, data),), origin, needed, transaction_version)
    aborted = () if changes is None else aborted_transactions(log.producers, changes.completed)
    rolled = _write(log, checked, now_ms, aborted)
    if leader_epoch != log.epochs.latest_epoch:
        _note_epoch(log, header)
    if plain is not None:
        plain.add_batch(BatchMetadata(header.last_sequence, last_offset, header.last_offset_delta, max_timestamp))
        plain.last_timestamp = max_timestamp
    elif changes is not None:
        _apply(log, changes, None)
    log.producers.map_end_offset = last_offset + 1
    times = max_timestamp, log_append_time
    info = (first_offset, last_offset, *times, log.log_start_offset, False, _is_flush_due(log), rolled, len(data))
    return tuple.__new__(AppendInfo, info)


def find_duplicate(log: LogState, records: Buffer) -> AppendInfo | None:
    """The offsets a batch has already, if it is one of its producer's last five; None as well for a damaged batch."""
    try:
        position, header = next(iter_batches(records), (0, None))
        if header is None or header.producer_id < 0 or position + header.size != len(records):
            return None
        verify_crc(records, position, header)
    except KafkaError:
        return None
    duplicate = _find_duplicate(log.producers, header)
    return None if duplicate is None else _duplicate_info(log, duplicate)


def _duplicate_info(log: LogState, duplicate: BatchMetadata) -> AppendInfo:
    return AppendInfo(
        duplicate.first_offset,
        duplicate.last_offset,
        duplicate.timestamp,
        duplicate.timestamp,
        log.log_start_offset,
        duplicate=True,
        # The first append may still be waiting for its flush.
        flush_required=_is_flush_due(log),
    )


def _is_flush_due(log: LogState) -> bool:
    return log.log_end_offset - log.recovery_point >= log.config.flush_messages


def append_as_follower(log: LogState, records: Buffer, *, now_ms: int) -> AppendInfo:
    """Append batches as the leader wrote them.

    Raises KafkaError(CORRUPT_MESSAGE), UnexpectedAppendOffsetError, LogDirError.
    """
    batches, found = _analyze_follower(records, log.log_end_offset, log.partition)
    if found is None:
        return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, log.log_start_offset)
    changes = _check_producers(log.producers, batches, AppendOrigin.REPLICATION, None)
    rolled = _write(log, found, now_ms)
    for header, _ in batches:
        _note_epoch(log, header)
    _apply(log, changes, log.segments_map.active)
    log.producers.map_end_offset = found.last_offset + 1
    return AppendInfo(
        found.first_offset,
        found.last_offset,
        found.max_timestamp,
        NO_TIMESTAMP,
        log.log_start_offset,
        False,
        _is_flush_due(log),
        rolled,
        len(found.data),
    )


def _note_epoch(log: LogState, header: BatchHeader) -> None:
    """Record the leader epoch of a batch that is in the log: on a full disk it does not get there.

    A batch without one (magic 0/1) invalidates the whole cache.
    """
    epoch = header.partition_leader_epoch
    if header.magic < 2:
        log.epochs.clear()
    elif epoch >= 0 and epoch != log.epochs.latest_epoch:
        log.epochs.assign(epoch, header.base_offset)


def _find_duplicate(state: ProducerState, header: BatchHeader) -> BatchMetadata | None:
    """The same batch among the producer's last five."""
    entry = state.producers.get(header.producer_id)
    if entry is None:
        return None
    return entry.find_duplicate(header.producer_epoch, header.base_sequence, header.last_sequence)


def _check_producers(
    state: ProducerState,
    batches: Sequence[tuple[BatchHeader, Buffer]],
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int = 0,
) -> ProducerChanges:
    """Check every batch that has a producer id (UnifiedLog.analyzeAndValidateProducerState, without duplicates).

    `guard`: what the first batch of a transaction has to be verified with; None: it needs none.
    """
    updates: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    for header, batch in batches:
        if not header.has_producer_id:
            continue
        if guard is not None and _lacks_verification(state, header, guard):
            state.check_epoch(header.producer_id, header.producer_epoch)
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        transaction = prepare_batch(state, header, batch, origin, updates, transaction_version)
        if transaction is not None:
            completed.append(transaction)
    return ProducerChanges(updates, completed)


def _lacks_verification(state: ProducerState, header: BatchHeader, guard: VerificationGuard) -> bool:
    """KIP-890: the first batch of a transaction needs the guard of a verification that succeeded."""
    return (
        header.is_transactional
        and not header.is_control
        and not state.has_ongoing_transaction(header.producer_id, header.producer_epoch)
        and not state.is_verified(header.producer_id, guard)
    )


def _write(log: LogState, records: ValidatedRecords, now_ms: int, aborted: Sequence[AbortedTxn] = ()) -> bool:
    """Roll if needed, write, and move the log end offset; whether it rolled. `aborted`: the transactions it ends."""
    data, _, first_offset, last_offset, max_timestamp, offset_of_max_timestamp, _, _, _ = records
    assert last_offset >= log.log_end_offset, f"{log}: the end would become {last_offset + 1}"
    config = log.config
    size = len(data)
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {log.partition}, which exceeds the maximum "
            f"configured segment size of {config.segment_bytes}.",
        )
    segment = log.segments_map.active
    rolled = False
    try:
        if segment.should_roll(config.segment_bytes, config.max_segment_ms, size, max_timestamp, last_offset, now_ms):
            # Kafka rolls at the first offset; at the log end, a gap between segments always means a loss.
            fits = last_offset - log.log_end_offset <= INT32_MAX
            segment = log.roll(now_ms, 0 if fits else first_offset)
            rolled = True
        if aborted:
            _append_marker(segment, data, first_offset, last_offset, max_timestamp, aborted)
        else:
            segment.append(data, first_offset, last_offset, max_timestamp, offset_of_max_timestamp)
    except OSError as error:
        raise log.io_error(error) from error
    log.log_end_offset = last_offset + 1
    return rolled


def _append_marker(
    segment: LogSegment,
    data: Buffer,
    first_offset: int,
    last_offset: int,
    max_timestamp: int,
    aborted: Sequence[AbortedTxn],
) -> None:
    """Write the index first, as its entries can be removed again: on a full disk both are written or neither."""
    try:
        for transaction in aborted:
            segment.txn_index.append(transaction)
        segment.append(data, first_offset, last_offset, max_timestamp, last_offset)
    except OSError:
        segment.txn_index.truncate_to(first_offset)
        raise


def _apply(log: LogState, changes: ProducerChanges, indexed: LogSegment | None) -> None:
    """Update producer state, first unstable offset and, where given, the transaction index of a segment."""
    for info in changes.updates.values():
        log.producers.update(info)
    if changes.completed:
        # On an OSError the marker is in the log and the index is not: only a recovery of the directory fixes that.
        with failing_takes_offline(log.log_dir):
            complete_transactions(log.producers, indexed, changes.completed)
    log.update_first_unstable_offset()


def _analyze_follower(
    records: Buffer, log_end_offset: int, partition: object
) -> tuple[list[tuple[BatchHeader, Buffer]], ValidatedRecords | None]:
    """Check batches from a leader: whole, sound, in order, and not below the log end offset. None where there are none.

    An incomplete last batch is left out, as a fetch response may end in one.
    """
    batches: list[tuple[BatchHeader, Buffer]] = []
    view = memoryview(records)
    last_offset = UNKNOWN_OFFSET
    max_timestamp, offset_of_max_timestamp = NO_TIMESTAMP, UNKNOWN_OFFSET
    valid_bytes = 0
    for position, header in iter_batches(records):
        verify_crc(records, position, header)
        if header.last_offset <= last_offset or header.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Out of order offsets found in append to {partition}: {header.last_offset} after "
                f"{max(last_offset, header.base_offset)}",
            )
        last_offset = header.last_offset
        if header.max_timestamp > max_timestamp:
            max_timestamp, offset_of_max_timestamp = header.max_timestamp, last_offset
        batches.append((header, view[position : position + header.size]))
        valid_bytes = position + header.size
    if not batches:
        return batches, None
    first = batches[0][0]
    first_offset = first.base_offset if first.magic >= 2 else first.last_offset
    if first_offset < log_end_offset:
        raise UnexpectedAppendOffsetError(
            f"Unexpected offset in append to {partition}. First offset {first_offset} is less than the next offset "
            f"{log_end_offset}.",
            first.base_offset,
            last_offset,
        )
    times = max_timestamp, offset_of_max_timestamp
    return batches, ValidatedRecords(view[:valid_bytes], first, first_offset, last_offset, *times, records_count=-1)
