"""Build magic 2 batches: for the internal topics, for conversion and recompression, for the cleaner.

Rules: the result is what DefaultRecordBatch writes, CRC included, with base offset and leader epoch as given. Errors
of the caller are ValueErrors; nothing here reads bytes from outside. `legacy` builds the older magics.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kpybroker.wire.compression import Codec, compress
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.crc import crc32c
from kpybroker.wire.primitives import BYTE, unsigned_varint
from kpybroker.wire.records.batch import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_MASK,
    BatchHeader,
    TimestampType,
)
from kpybroker.wire.records.default_record import NO_HEADERS, CopiedRecord, Headers, Record

_AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")

Entry = tuple[bytes | None, bytes | None, int]
"""Key, value, timestamp in ms."""


class BatchFields(NamedTuple):
    """What a magic 2 batch says of itself and its records do not. Timestamps are in ms.

    `level` None is the codec's default. `log_append_time` is every record's timestamp with LOG_APPEND_TIME.
    `delete_horizon_ms` takes the place of the base timestamp (KIP-534).
    """

    codec: Codec = Codec.NONE
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: int = NO_TIMESTAMP
    delete_horizon_ms: int | None = None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    is_control: bool = False
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH


DEFAULT_FIELDS = BatchFields()
"""No codec, no producer, CreateTime."""


def build_batch(entries: Iterable[Entry], fields: BatchFields = DEFAULT_FIELDS, *, base_offset: int = 0) -> bytearray:
    """One batch of (key, value, timestamp) entries at consecutive offsets from `base_offset`."""
    records = [
        Record(base_offset + index, timestamp, key, value) for index, (key, value, timestamp) in enumerate(entries)
    ]
    return build_batch_of(records, fields)


def build_batch_of(
    records: Sequence[Record] | Sequence[CopiedRecord],
    fields: BatchFields = DEFAULT_FIELDS,
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
) -> bytearray:
    """One batch of records that keep their offsets, which must rise; their sequences are ignored.

    `base_offset` and `last_offset` default to the first and last record's; a batch that lost records to compaction
    keeps its own.
    """
    if not records:
        raise ValueError("a batch needs a record; see empty_batch")
    base_offset = records[0].offset if base_offset is None else base_offset
    last_offset = records[-1].offset if last_offset is None else last_offset
    base_timestamp = records[0].timestamp if fields.delete_horizon_ms is None else fields.delete_horizon_ms
    if fields.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = fields.log_append_time
    else:
        max_timestamp = max(record.timestamp for record in records)
    attributes = int(fields.codec) | fields.timestamp_type << 3
    attributes |= TRANSACTIONAL_MASK if fields.is_transactional else 0
    attributes |= CONTROL_MASK if fields.is_control else 0
    attributes |= DELETE_HORIZON_MASK if fields.delete_horizon_ms is not None else 0
    body = encode_records(records, base_offset, base_timestamp)
    return _assemble(
        base_offset,
        fields.partition_leader_epoch,
        _AFTER_CRC.pack(
            attributes,
            last_offset - base_offset,
            base_timestamp,
            max_timestamp,
            fields.producer_id,
            fields.producer_epoch,
            fields.base_sequence,
            len(records),
        ),
        body if fields.codec is Codec.NONE else compress(fields.codec, body, fields.level),
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """A batch without records that keeps the offsets and producer state of one whose records are all removed.

    The cleaner leaves it of a producer's last batch (DefaultRecordBatch.writeEmptyHeader): no timestamp, no codec.
    """
    attributes = header.timestamp_type << 3 | header.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)
    after_crc = _AFTER_CRC.pack(
        attributes,
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    return _assemble(header.base_offset, header.partition_leader_epoch, after_crc, b"")


def rebuild_batch(header: BatchHeader, section: bytes | bytearray) -> bytearray:
    """A batch with the fields of `header` and other records, given uncompressed; length and CRC are computed again."""
    after_crc = _AFTER_CRC.pack(*header[5:])
    body = section if header.codec is Codec.NONE else compress(header.codec, section)
    return _assemble(header.base_offset, header.partition_leader_epoch, after_crc, body)


def _assemble(base_offset: int, partition_leader_epoch: int, after_crc: bytes, body: bytes | bytearray) -> bytearray:
    crc = crc32c(body, crc32c(after_crc))
    length = RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(body)
    batch = bytearray(_BEFORE_CRC.pack(base_offset, length, partition_leader_epoch, 2, crc))
    batch += after_crc
    batch += body
    return batch


def encode_records(
    records: Sequence[Record] | Sequence[CopiedRecord], base_offset: int, base_timestamp: int
) -> bytearray:
    """The uncompressed records section; ValueError if offsets do not rise."""
    section = bytearray()
    previous = base_offset - 1
    for record in records:
        if record.offset <= previous:
            raise ValueError(f"offset {record.offset} does not rise above {previous}")
        previous = record.offset
        body = _encode_record(record, record.offset - base_offset, record.timestamp - base_timestamp)
        section += varint(len(body))
        section += body
    return section


def _encode_record(record: Record | CopiedRecord, offset_delta: int, timestamp_delta: int) -> bytes:
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]
    for field in (record.key, record.value):
        if field is None:
            parts.append(b"\1")
        else:
            parts += (varint(len(field)), field)
    headers = record.headers
    parts.append(headers if isinstance(headers, bytes) else _encode_headers(headers))
    return b"".join(parts)


def _encode_headers(headers: Headers) -> bytes:
    if not headers:
        return NO_HEADERS
    parts = [varint(len(headers))]
    for key, value in headers:
        encoded = key.encode("utf-8", "surrogateescape")
        parts += (varint(len(encoded)), encoded)
        parts += (b"\1",) if value is None else (varint(len(value)), value)
    return b"".join(parts)


def varint(value: int) -> bytes:
    """Zigzag varint of an int32 or int64."""
    value = value << 1 if value >= 0 else (-value << 1) - 1
    return BYTE[value] if value < 128 else unsigned_varint(value)
