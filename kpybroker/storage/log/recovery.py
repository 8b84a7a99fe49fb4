"""From the bytes of a log back to what is derived from them: producer state, leader epochs, indexes.

Used when a log is loaded and when it was truncated. Everything here reads batches in order and raises
SegmentOverflowError where a segment holds offsets that its index cannot express. Batches are accepted as a follower
accepts them: epochs and sequences were checked when the leader appended them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kpybroker.core.log.producer_append import STRICT_MARKERS_FROM, AppendOrigin, ProducerAppendInfo
from kpybroker.core.log.producer_entries import CompletedTxn
from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.replication.leader_epochs import LeaderEpochCache
from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.log.producer_snapshots import ProducerSnapshots
from kpybroker.storage.segments.overflow import check_no_overflow
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_list import LogSegments
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import (
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    corrupt,
    parse_header,
    verify_crc,
)
from kpybroker.wire.records.control import EndTransactionMarker, parse_end_transaction_marker
from kpybroker.wire.records.record import iter_records

logger = logging.getLogger("kafka.log.LogLoader")


def prepare_batch(
    state: ProducerState,
    header: BatchHeader,
    batch: Buffer,
    origin: AppendOrigin,
    updates: dict[int, ProducerAppendInfo],
    transaction_version: int = 0,
) -> CompletedTxn | None:
    """Check a batch that has a producer id against the state and note it in `updates` (UnifiedLog.updateProducers).

    `transaction_version` is that of the transaction which a marker ends.
    """
    info = updates.get(header.producer_id)
    if info is None:
        info = updates[header.producer_id] = state.prepare_update(header.producer_id, origin)
    completed = None
    if header.is_control:
        marker = _end_transaction_marker(header, batch)
        if marker is not None:
            completed = info.append_marker(marker, header.producer_epoch, header.base_offset, transaction_version)
    else:
        info.append_data(header)
    ends_an_earlier_one = (
        transaction_version >= STRICT_MARKERS_FROM
        and header.is_control
        and state.is_of_later_transaction(header.producer_id, header.producer_epoch)
    )
    if header.is_transactional and not ends_an_earlier_one:
        state.clear_verification(header.producer_id)
    return completed


def _end_transaction_marker(header: BatchHeader, batch: Buffer) -> EndTransactionMarker | None:
    """None where the batch is empty: compaction removed the marker with its transaction."""
    for record in iter_records(batch, header, read_headers_max=0):
        return parse_end_transaction_marker(record)
    return None


def complete_transactions(state: ProducerState, segment: LogSegment | None, completed: Iterable[CompletedTxn]) -> None:
    """End transactions whose markers are in the log; aborted ones go to the segment's transaction index."""
    for transaction in completed:
        if segment is not None:
            for aborted in aborted_transactions(state, (transaction,)):
                segment.txn_index.append(aborted)
        state.complete_txn(transaction)


def aborted_transactions(state: ProducerState, completed: Iterable[CompletedTxn]) -> list[AbortedTxn]:
    """The transaction index entries for transactions that end now.

    A follower appends what follows the marker together with it. Kafka then records the first transaction begun there as
    the last stable offset, which after a truncation between the two hides what is aborted there later. Here the entry
    is what the leader has written.
    """
    return [
        AbortedTxn(
            ended.producer_id,
            ended.first_offset,
            ended.last_offset,
            min(state.last_stable_offset_after(ended), ended.last_offset + 1),
        )
        for ended in completed
        if ended.is_aborted
    ]


def check_aborted(segment: LogSegment, before: LogSegments) -> None:
    """Compare the entries of a transaction index with the batches that they name. Raises CorruptIndexError.

    Entries have no checksum, and data that they lack is served to readers of committed data. Kafka trusts them.
    """
    for entry in segment.txn_index.entries():
        is_sound = (
            0 <= entry.first_offset < entry.last_offset
            and _is_of(segment, entry.last_offset, entry.producer_id, is_control=True)
            and _begins_at(segment, before, entry.first_offset, entry.producer_id)
            and (
                entry.last_stable_offset == entry.last_offset + 1
                or _begins_at(segment, before, entry.last_stable_offset, None)
            )
        )
        if not is_sound:
            raise CorruptIndexError(f"{segment.txn_index.handle.path} says {entry}, and the log does not")


def _begins_at(segment: LogSegment, before: LogSegments, offset: int, producer_id: int | None) -> bool:
    """Whether a transaction of the producer (any, if None) may begin there. True where the segment is deleted."""
    holder = segment if offset >= segment.base_offset else before.floor(offset)
    return holder is None or _is_of(holder, offset, producer_id, is_control=False)


def _is_of(segment: LogSegment, offset: int, producer_id: int | None, *, is_control: bool) -> bool:
    try:
        found = segment.translate_offset(offset)
    except KafkaError:
        return True  # the data are damaged, which reading them reports
    if found is None:
        return False
    header = parse_header(segment.records.read(found.position, RECORD_BATCH_OVERHEAD))
    return (
        header.base_offset == offset
        and header.is_transactional
        and header.is_control == is_control
        and producer_id in (None, header.producer_id)
    )


def recover_segment(
    segment: LogSegment, snapshots: ProducerSnapshots, epochs: LeaderEpochCache, *, may_overflow: bool = True
) -> int:
    """Verify every batch, cut at the first bad one, and rebuild the indexes (LogSegment.recover). Bytes removed.

    `snapshots` holds the producer state at the segment's base offset, and at its end afterwards. Only compaction makes
    segments whose offsets overflow: elsewhere an offset far off is damage (the CRC does not cover it).
    """
    segment.reset_indexes()
    valid_bytes = indexed = 0
    last_offset = segment.base_offset - 1
    try:
        for position, header, batch in segment.records.batches():
            verify_crc(batch, 0, header)
            if header.last_offset <= last_offset:
                raise corrupt(f"offset {header.last_offset} follows {last_offset}")
            if not may_overflow and header.last_offset - segment.base_offset > INT32_MAX:
                raise corrupt(f"offset {header.last_offset} is not of a segment that begins at {segment.base_offset}")
            check_no_overflow(segment, header.last_offset)
            last_offset = header.last_offset
            segment.note_timestamp(header.max_timestamp, last_offset)
            if position - indexed > segment.index_interval_bytes:
                segment.add_recovered_index_entries(last_offset, position)
                indexed = position
            if header.magic >= 2:
                if header.partition_leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
                _replay_batch(segment, snapshots.state, header, batch)
            valid_bytes = position + header.size
    except KafkaError as error:
        if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD):
            raise
        logger.warning(
            "Found invalid messages in log segment %s at byte offset %d: %s",
            segment.records.path,
            valid_bytes,
            error,
        )
    removed = segment.records.truncate_to(valid_bytes)
    segment.append_largest_timestamp()
    # What an earlier process wrote may be in the page cache only: the next flush syncs it.
    segment.records.dirty = segment.is_new = True
    return removed


def _replay_batch(segment: LogSegment, state: ProducerState, header: BatchHeader, batch: Buffer) -> None:
    if header.has_producer_id:
        updates: dict[int, ProducerAppendInfo] = {}
        completed = prepare_batch(state, header, batch, AppendOrigin.REPLICATION, updates)
        state.update(updates[header.producer_id])
        if completed is not None:
            complete_transactions(state, segment, (completed,))
    state.map_end_offset = header.next_offset


def rebuild_producer_state(
    snapshots: ProducerSnapshots,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    *,
    now_ms: int,
    sync: bool,
) -> None:
    """Bring the producer state to `last_offset`, from the latest snapshot and the batches after it.

    Does not change the log itself (UnifiedLog.rebuildProducerState). `sync` makes new snapshots durable at once.
    """
    snapshot_offsets = _snapshot_offsets(segments, last_offset)
    state = snapshots.state
    was_empty = state.is_empty and state.map_end_offset >= last_offset
    snapshots.truncate_and_reload(log_start_offset, last_offset, now_ms)
    for message in snapshots.corrupt:
        logger.warning(message)
    snapshots.corrupt = ()
    if last_offset > state.map_end_offset and not was_empty:
        for segment in segments.from_offset(state.map_end_offset, last_offset):
            start_offset = max(segment.base_offset, state.map_end_offset, log_start_offset)
            state.map_end_offset = start_offset
            if segment.base_offset in snapshot_offsets:
                snapshots.take(sync=sync)
            _load_producers(state, segment, start_offset, last_offset)
    state.map_end_offset = last_offset
    snapshots.take(sync=sync)


def take_empty_snapshots(snapshots: ProducerSnapshots, segments: LogSegments, last_offset: int) -> None:
    """For a log that was closed cleanly by a version without snapshots: nothing is scanned, now or after a truncation.

    Raises OSError.
    """
    for offset in sorted(_snapshot_offsets(segments, last_offset)):
        snapshots.state.map_end_offset = offset
        snapshots.take(sync=True)


def _snapshot_offsets(segments: LogSegments, last_offset: int) -> set[int]:
    """Where snapshots are taken: at the base of the last two segments, and at the end."""
    offsets = {last_offset}
    if len(segments):
        offsets.add(segments.active.base_offset)
        before = segments.lower(segments.active.base_offset)
        if before is not None:
            offsets.add(before.base_offset)
    return offsets


def _load_producers(state: ProducerState, segment: LogSegment, start_offset: int, end_offset: int) -> None:
    found = segment.translate_offset(start_offset)
    if found is None:
        return
    updates: dict[int, ProducerAppendInfo] = {}
    completed = []
    for position, header in segment.records.headers(found.position):
        if header.last_offset >= end_offset:
            break
        if not header.has_producer_id:
            continue
        batch = segment.records.read(position, header.size) if header.is_control else b""
        transaction = prepare_batch(state, header, batch, AppendOrigin.REPLICATION, updates)
        if transaction is not None:
            completed.append(transaction)
    for info in updates.values():
        state.update(info)
    complete_transactions(state, None, completed)
