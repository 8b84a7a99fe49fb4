"""Records inside a magic 2 batch.

Rules: a batch is read strictly, as DefaultRecord.readFrom does: every length within its record, every record within
the batch, as many records as the header says and nothing after them; else INVALID_RECORD. Decompression is bounded by
`max_bytes` (MESSAGE_TOO_LARGE above it, CORRUPT_MESSAGE for bytes that do not decompress). The CRC is not checked
here: `batch.verify_crc` does that.

Layout of a record: varint length, int8 attributes (unused), varint timestamp delta, varint offset delta, varint key
length (-1 null) and key, varint value length and value, varint header count and per header key and value alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpybroker.wire.compression import decompress
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import (
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    TimestampType,
    corrupt,
    increment_sequence,
)
from kpybroker.wire.records.pauses import pausing

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""Uncompressed size above which a compressed batch is rejected if its records must be read."""

COPY_MAX_BYTES = 1024 * 1024  # up to here, indexing a copy is faster than indexing a memoryview

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record with its absolute offset. `sequence` is -1 without an idempotent producer.

    Header keys are text; bytes that are not UTF-8 become surrogates, and the same bytes again when written.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = NO_SEQUENCE


class Span(NamedTuple):
    """Where one record's parts are in its batch's uncompressed bytes. Ends are -1 for null."""

    offset_delta: int
    timestamp: int
    key_start: int
    key_end: int
    value_start: int
    value_end: int
    headers_start: int
    header_count: int
    end: int


INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_ZIGZAG = tuple(byte >> 1 ^ -(byte & 1) for byte in range(0x80))
_make_span = Span._make
_make_record = Record._make


def invalid(message: str) -> KafkaError:
    """A KafkaError with INVALID_RECORD, to be raised."""
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def records_section(buffer: Buffer, position: int, header: BatchHeader, max_bytes: int) -> Buffer:
    """The uncompressed records of a magic 2 batch: as bytes up to COPY_MAX_BYTES, else as a view."""
    end = position + header.size
    if len(buffer) < end:
        raise corrupt("Record batch is cut off")
    section = decompress(header.codec, memoryview(buffer)[position + RECORD_BATCH_OVERHEAD : end], max_bytes)
    return bytes(section) if len(section) <= COPY_MAX_BYTES else section


def iter_spans(section: Buffer, header: BatchHeader) -> Iterator[Span]:
    """The place of every record of a magic 2 batch in `section`, checked strictly."""
    count = header.records_count
    if count < 0:
        raise invalid(f"Found invalid record count {count} in magic v2 batch")
    if count == 0:
        return
    position, total = 0, len(section)
    stamped_by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    base_timestamp, append_time = header.base_timestamp, header.max_timestamp if stamped_by_broker else None
    for _ in pausing(count):
        try:
            span = _read_span(section, position, total, base_timestamp, append_time)
        except IndexError:
            raise invalid("Incorrect declared batch size, premature EOF reached") from None
        yield span
        position = span.end
    if position != total:
        raise invalid("Incorrect declared batch size, records still remaining in file")


def _read_span(section: Buffer, position: int, total: int, base_timestamp: int, append_time: int | None) -> Span:
    """One record. With LogAppendTime the batch's `append_time` is every record's timestamp.

    One-byte varints, which are nearly all, are decoded in line: this is the innermost loop over records.
    """
    start = position
    byte = section[position]
    size, position = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
    end = position + size
    if size < 0 or end > total:
        raise invalid(f"Invalid record size: expected {size} bytes, but {total - position} are left in the batch")
    position += 1
    byte = section[position]
    delta, position = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 64)
    timestamp = base_timestamp + delta if append_time is None else append_time
    if not INT64_MIN <= timestamp <= INT64_MAX:
        raise invalid(f"Timestamp {timestamp} does not fit into 64 bits")
    byte = section[position]
    offset_delta, position = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
    byte = section[position]
    size, key_start = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
    key_end = key_start + size if size >= 0 else -1
    position = key_start if size < 0 else key_end
    byte = section[position]
    size, value_start = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
    value_end = value_start + size if size >= 0 else -1
    position = value_start if size < 0 else value_end
    byte = section[position]
    header_count, headers_start = (
        (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
    )
    position = _skip_headers(section, headers_start, end, header_count) if header_count else headers_start
    if position != end:
        raise invalid(f"Invalid record size: the fields of the record at byte {start} end {end - position} bytes early")
    return _make_span(
        (
            offset_delta,
            timestamp,
            key_start,
            key_end,
            value_start,
            value_end,
            headers_start,
            header_count,
            end,
        )
    )


def _skip_headers(section: Buffer, position: int, end: int, count: int) -> int:
    if not 0 <= count <= end - position:
        raise invalid(f"Found invalid number of record headers {count}")
    for _ in range(count):
        size, position = read_varint(section, position)
        if size < 0:
            raise invalid(f"Invalid negative header key size {size}")
        size, position = read_varint(section, position + size)
        if size > 0:
            position += size
    return position


def read_varint(section: Buffer, position: int) -> tuple[int, int]:
    """A zigzag int32 and the position after it. IndexError at the end, INVALID_RECORD above five bytes."""
    byte = section[position]
    if byte < 0x80:
        return _ZIGZAG[byte], position + 1
    return read_long_varint(section, position, 32)


def read_long_varint(section: Buffer, position: int, bits: int) -> tuple[int, int]:
    """A varint of any length, and the position after it."""
    result, shift = 0, 0
    while True:
        byte = section[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise invalid(f"Varint is longer than {bits} bits allow")
    result &= (1 << bits) - 1  # Java drops what does not fit
    return result >> 1 ^ -(result & 1), position


def read_headers(section: Buffer, span: Span) -> Headers:
    """The headers of a record whose span has been checked."""
    headers: list[tuple[str, bytes | None]] = []
    position = span.headers_start
    for _ in range(span.header_count):
        size, position = read_varint(section, position)
        key = str(bytes(section[position : position + size]), "utf-8", "surrogateescape")
        size, position = read_varint(section, position + size)
        value = bytes(section[position : position + size]) if size >= 0 else None
        position += max(size, 0)
        headers.append((key, value))
    return tuple(headers)


def iter_default_records(buffer: Buffer, header: BatchHeader, position: int, max_bytes: int) -> Iterator[Record]:
    """The records of a magic 2 batch; see `record.iter_records`."""
    if header.records_count == 0:
        return
    section = records_section(buffer, position, header, max_bytes)
    base_offset, base_sequence = header.base_offset, header.base_sequence
    for span in iter_spans(section, header):
        delta, timestamp, key_start, key_end, value_start, value_end, _, header_count, _ = span
        yield _make_record(
            (
                base_offset + delta,
                timestamp,
                bytes(section[key_start:key_end]) if key_end >= 0 else None,
                bytes(section[value_start:value_end]) if value_end >= 0 else None,
                read_headers(section, span) if header_count else (),
                increment_sequence(base_sequence, delta) if base_sequence >= 0 else NO_SEQUENCE,
            )
        )
