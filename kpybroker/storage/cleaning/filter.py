"""What remains of a batch: ``MemoryRecords.filterTo`` with the cleaner's rules (Cleaner.cleanInto, shouldRetainRecord).

A record is kept if it has a key and no later record of that key was seen, unless it is a tombstone whose time is over.
That time, the delete horizon, begins when a cleaning first meets the tombstone, and is written into its batch
(KIP-534). For magic 0 and 1, which have no field for it, the age of the segment decides. Offsets never change, and
neither do a batch's first and last offset, so its producer's sequence numbers stay. A batch of which everything is kept
is copied unchanged. Two kinds of batches are kept even without records: the last batch of a live producer, and the last
batch of the cleaned range.

Records are not decoded: the walk finds keys, tombstones and borders, and the result is put together from slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kpybroker.core.log.cleaner_map import NOT_FOUND, OffsetMap
from kpybroker.storage.cleaning.transactions import CleanedTransactions
from kpybroker.storage.segments.txn_index import AbortedTxn
from kpybroker.wire.compression import decompress
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import DELETE_HORIZON_MASK, RECORD_BATCH_OVERHEAD, BatchHeader, TimestampType
from kpybroker.wire.records.builder import empty_batch, rebuild_batch, varint
from kpybroker.wire.records.default_record import invalid, read_long_varint
from kpybroker.wire.records.legacy import build_message_set, read_wrapper
from kpybroker.wire.records.record import iter_records

RECORDS_MAX_BYTES = 100 * 1024 * 1024
"""Of one compressed batch: above it the partition is not cleaned. As large as a request may be (the default), so that
no batch exceeds it whose records were looked at when it was appended."""

NO_DATA_OFFSET = -1

Place = tuple[int, int, int, bool, int, int]
"""A record in its section: offset delta, key's start and end (-1 null), whether there is a value, start and end."""


class Section(NamedTuple):
    """The records of a batch, uncompressed: `data[start:end]`."""

    data: bytes
    start: int
    end: int


def section_of(data: bytes, position: int, header: BatchHeader) -> Section:
    """The records of the batch at `position` of `data`, uncompressed. Raises KafkaError."""
    start, end = position + RECORD_BATCH_OVERHEAD, position + header.size
    if not header.is_compressed:
        return Section(data, start, end)
    content = bytes(decompress(header.codec, memoryview(data)[start:end], RECORDS_MAX_BYTES))
    return Section(content, 0, len(content))


def iter_places(section: Section, count: int) -> Iterator[Place]:
    """Every record of a magic 2 batch. Raises INVALID_RECORD where lengths contradict each other.

    This is the inner loop of all cleaning. Varints of one and two bytes, which are nearly all, are decoded in line.
    """
    data, start, limit = section
    try:
        for _ in range(count):
            first = data[start]
            if first < 0x80:
                size, position = first >> 1, start + 1
            elif (second := data[start + 1]) < 0x80:
                size, position = (first & 0x7F | second << 7) >> 1, start + 2
            else:
                size, position = read_long_varint(data, start, 32)
            end = position + size
            position += 1  # attributes
            while data[position] >= 0x80:  # the timestamp
                position += 1
            position += 1
            first = data[position]
            if first < 0x80:
                delta, position = first >> 1, position + 1
            elif (second := data[position + 1]) < 0x80:
                delta, position = (first & 0x7F | second << 7) >> 1, position + 2
            else:
                delta, position = read_long_varint(data, position, 32)
            first = data[position]
            if first < 0x80:
                size, key_start = first >> 1 ^ -(first & 1), position + 1
            else:
                size, key_start = read_long_varint(data, position, 32)
            key_end = position = key_start + size
            if size < 0:
                key_end, position = -1, key_start
            if not position < end <= limit:
                raise invalid(f"Invalid record size: the record at byte {start} ends at {end} of {limit}")
            yield delta, key_start, key_end, not data[position] & 1, start, end
            start = end
    except IndexError:
        raise invalid("Incorrect declared batch size, premature EOF reached") from None
    if start != limit:
        raise invalid("Incorrect declared batch size, records still remaining in file")


class KeptBatch(NamedTuple):
    """What the cleaned segment gets in place of a batch."""

    data: Buffer
    last_offset: int
    max_timestamp: int


class LastRecord(NamedTuple):
    """The last offset of a live producer's data, or -1 where its last batch was a marker."""

    data_offset: int
    producer_epoch: int


class Filter:
    """The rules of one cleaning, with counts of records read and kept."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        last_records: Mapping[int, LastRecord],
        *,
        now_ms: int,
        delete_retention_ms: int,
        first_uncleanable_offset: int,
    ) -> None:
        self._get = offsets.get
        self._latest_offset = offsets.latest_offset
        self._transactions = transactions
        self._last_records = last_records
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._first_uncleanable_offset = first_uncleanable_offset
        self.retain_legacy_deletes = True  # of the segment at hand
        self.messages_read = 0
        self.messages_written = 0
        self.invalid_messages = 0  # without a key

    def take_retained_transactions(self) -> list[AbortedTxn]:
        """Entries for the transaction index: those whose abort markers were kept since the last call."""
        return self._transactions.take_retained()

    def clean(self, data: bytes, position: int, header: BatchHeader) -> KeptBatch | None:
        """What remains of the batch at `position`; None if nothing. Raises KafkaError for bytes that are no batch."""
        may_discard = self._transactions.may_discard(data, position, header)
        is_over = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        if may_discard and (is_over or not header.is_control):
            return self._emptied(header)
        if header.magic < 2:
            return self._clean_legacy(data, position, header)
        if header.is_control:
            return self._clean_marker(data, position, header, may_discard)
        return self._clean_records(data, position, header, retain_deletes=not is_over)

    def _emptied(self, header: BatchHeader) -> KeptBatch | None:
        if not self._must_stay(header):
            return None
        return KeptBatch(empty_batch(header), header.last_offset, header.max_timestamp)

    def _must_stay(self, header: BatchHeader) -> bool:
        """Whether the batch is needed even without records.

        For the last sequence number of a live producer, for the last epoch of one whose last batch is a marker, or to
        keep the end of the cleaned range (KAFKA-17076).
        """
        if header.next_offset == self._first_uncleanable_offset:
            return True
        last = self._last_records.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.data_offset != NO_DATA_OFFSET:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _clean_marker(
        self, data: bytes, position: int, header: BatchHeader, ends_empty_transaction: bool
    ) -> KeptBatch | None:
        self.messages_read += header.records_count
        if header.records_count == 0:
            return self._emptied(header)
        self.messages_written += header.records_count
        if ends_empty_transaction and not header.has_delete_horizon:
            section = section_of(data, position, header)
            places = list(iter_places(section, header.records_count))
            return _rebuilt(section, header, places, self._now_ms + self._delete_retention_ms)
        return _as_it_is(data, position, header)

    def _clean_records(
        self, data: bytes, position: int, header: BatchHeader, *, retain_deletes: bool
    ) -> KeptBatch | None:
        section = section_of(data, position, header)
        content, get = section.data, self._get
        base_offset, latest = header.base_offset, self._latest_offset
        kept: list[Place] = []
        has_tombstones = False
        for place in iter_places(section, header.records_count):
            delta, key_start, key_end, has_value, _, _ = place
            offset = base_offset + delta
            if offset <= latest:
                if key_end < 0:
                    self.invalid_messages += 1
                    continue
                if get(content[key_start:key_end], NOT_FOUND) > offset or not (has_value or retain_deletes):
                    continue
            if not has_value:
                has_tombstones = True
            kept.append(place)
        self.messages_read += header.records_count
        self.messages_written += len(kept)
        if not kept:
            return self._emptied(header)
        if has_tombstones and not header.has_delete_horizon:
            return _rebuilt(section, header, kept, self._now_ms + self._delete_retention_ms)
        if len(kept) == header.records_count:
            return _as_it_is(data, position, header)
        return _rebuilt(section, header, kept, None)

    def _clean_legacy(self, data: bytes, position: int, header: BatchHeader) -> KeptBatch | None:
        """A message, or a wrapper whose messages get its magic if they have another one (KAFKA-4298)."""
        if header.is_compressed:
            messages = list(read_wrapper(data, header, position, max_bytes=RECORDS_MAX_BYTES))
            records = [message.record for message in messages]
            is_sound = all(message.magic == header.magic for message in messages)
        else:
            records, is_sound = list(iter_records(data, header, position)), True
        kept = []
        for record in records:
            if record.offset <= self._latest_offset:
                if record.key is None:
                    self.invalid_messages += 1
                    continue
                if self._get(record.key, NOT_FOUND) > record.offset:
                    continue
                if record.value is None and not self.retain_legacy_deletes:
                    continue
            kept.append(record)
        self.messages_read += len(records)
        if not kept and header.next_offset == self._first_uncleanable_offset:
            kept = records  # there are no empty batches of this magic (Kafka gives up here)
        self.messages_written += len(kept)
        if not kept:
            return None
        if len(kept) == len(records) and is_sound:
            return _as_it_is(data, position, header)
        rebuilt = build_message_set(
            kept,
            header.magic,
            codec=header.codec,
            timestamp_type=header.timestamp_type,
            log_append_time=header.max_timestamp,
        )
        return KeptBatch(rebuilt, kept[-1].offset, max(record.timestamp for record in kept))


def _as_it_is(data: bytes, position: int, header: BatchHeader) -> KeptBatch:
    return KeptBatch(memoryview(data)[position : position + header.size], header.last_offset, header.max_timestamp)


def _rebuilt(section: Section, header: BatchHeader, kept: list[Place], new_horizon: int | None) -> KeptBatch:
    """The batch with these records only; with a new delete horizon, which replaces the base timestamp.

    Timestamps are differences to the base timestamp: where that changes, and with LogAppendTime, they are rewritten.
    """
    data = section.data
    by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    starts = [_after_timestamp(data, place[4]) for place in kept]
    if by_broker:
        timestamps = [header.max_timestamp] * len(kept)
    else:
        timestamps = [header.base_timestamp + delta for delta, _ in starts]
    if new_horizon is not None:
        base_timestamp = new_horizon
    else:
        base_timestamp = header.base_timestamp if header.has_delete_horizon else timestamps[0]
    if base_timestamp == header.base_timestamp and not by_broker:
        body = b"".join([data[place[4] : place[5]] for place in kept])
    else:
        parts: list[bytes] = []
        for place, timestamp, (_, rest) in zip(kept, timestamps, starts, strict=True):
            encoded = varint(timestamp - base_timestamp)
            parts += (varint(1 + len(encoded) + place[5] - rest), b"\0", encoded, data[rest : place[5]])
        body = b"".join(parts)
    max_timestamp = header.max_timestamp if by_broker else max(NO_TIMESTAMP, *timestamps)
    changed = header._replace(
        attributes=header.attributes | (DELETE_HORIZON_MASK if new_horizon is not None else 0),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        records_count=len(kept),
    )
    return KeptBatch(rebuild_batch(changed, body), header.last_offset, max_timestamp)


def _after_timestamp(data: bytes, position: int) -> tuple[int, int]:
    """The timestamp's difference of the record at `position`, and where the rest of the record begins."""
    while data[position] >= 0x80:
        position += 1
    return read_long_varint(data, position + 2, 64)
