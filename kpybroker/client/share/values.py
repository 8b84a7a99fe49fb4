"""What a member of a share group receives, and what it says about it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import TIMESTAMP_TYPES, Record
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchResponse
from kpybroker.wire.records.batch import BatchHeader, TimestampType, iter_batches, verify_crc
from kpybroker.wire.records.record import Record as WireRecord
from kpybroker.wire.records.record import iter_records

Key = tuple[bytes, int]
"""A topic's id and a partition."""

ACQUIRED_MAX: Final = 1_000_000
"""Offsets of a partition in one response; brokers have some thousands in flight at most."""


class Ack(enum.IntEnum):
    """What becomes of a record; the numbers are the protocol's."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Delivered(NamedTuple):
    """A record that this member has acquired. `record.delivery_count` is 1 at the first attempt."""

    node_id: int
    key: Key
    record: Record

    @property
    def offset(self) -> int:
        """Of the record."""
        assert self.record.offset is not None, "a record that was read has an offset"
        return self.record.offset


class Refused(NamedTuple):
    """Acknowledgements of a partition that had no effect: the records are delivered again."""

    topic: str
    partition: int
    offsets: tuple[int, ...]
    error: CommandError


def delivered(node_id: int, topic: str, key: Key, partition: ShareFetchResponse.PartitionData) -> list[Delivered | int]:
    """What was acquired of a partition in the order of offsets: a record, or the offset alone where there is none.

    Compaction and control records leave such gaps. Raises CommandError for records that cannot be read.
    """
    if sum(one.last_offset - one.first_offset + 1 for one in partition.acquired_records) > ACQUIRED_MAX:
        raise CommandError(f"the broker says that more than {ACQUIRED_MAX} offsets of {topic}-{key[1]} were acquired")
    counts = {
        offset: one.delivery_count
        for one in partition.acquired_records
        for offset in range(one.first_offset, one.last_offset + 1)
    }
    records: dict[int, Record] = {}
    try:
        for header, record in _records(bytes(partition.records or b"")):
            if record.offset in counts:
                records[record.offset] = _record(topic, key[1], header, record, counts[record.offset])
    except KafkaError as error:
        raise CommandError(f"records of {topic}-{key[1]} cannot be read: {error}") from None
    return [Delivered(node_id, key, records[offset]) if offset in records else offset for offset in sorted(counts)]


def _records(data: bytes) -> Iterator[tuple[BatchHeader, WireRecord]]:
    for position, header in iter_batches(data):
        if header.is_control:
            continue
        verify_crc(data, position, header)
        for record in iter_records(data, header, position):
            yield header, record


def _record(topic: str, partition: int, header: BatchHeader, record: WireRecord, delivery_count: int) -> Record:
    is_append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    timestamp = header.max_timestamp if is_append_time else record.timestamp
    return Record(
        topic,
        record.key,
        record.value,
        list(record.headers),
        partition,
        record.offset,
        timestamp if timestamp >= 0 else None,
        TIMESTAMP_TYPES[2 if is_append_time else 1] if timestamp >= 0 else None,
        header.partition_leader_epoch,
        delivery_count,
    )


def batches(offsets: Iterable[int], kind: Ack) -> list[Any]:
    """The same acknowledgement for each of these offsets, as runs."""
    made: list[Any] = []
    for offset in sorted(offsets):
        if made and made[-1].last_offset == offset - 1:
            made[-1].last_offset = offset
        else:
            run = ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=offset, last_offset=offset, acknowledge_types=[int(kind)]
            )
            made.append(run)
    return made


def topics_of(keys: Sequence[Key]) -> dict[bytes, list[int]]:
    """Partitions by topic id."""
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(keys):
        found.setdefault(topic_id, []).append(partition)
    return found
