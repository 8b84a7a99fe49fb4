"""Records inside a magic 2 batch.

Rules: a batch is walked strictly, as DefaultRecord.readFrom does: every length within its record, every record within
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
from kpybroker.wire.records.batch import (
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    Buffer,
    TimestampType,
    corrupt,
    increment_sequence,
)

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""Uncompressed size above which a compressed batch is refused where its records must be seen."""

COPY_MAX_BYTES = 1024 * 1024  # up to here, indexing a bytes copy beats indexing a memoryview

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record with its absolute offset. `sequence` is -1 without an idempotent producer.

    Header keys are text; bytes that are not UTF-8 survive a round trip as surrogates.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = NO_SEQUENCE


class Span(NamedTuple):
    """Where one record's parts lie in its batch's uncompressed bytes. Ends are -1 for null."""

    offset_delta: int
    timestamp_delta: int
    key_start: int
    key_end: int
    value_start: int
    value_end: int
    headers_start: int
    header_count: int
    end: int


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def records_section(buffer: Buffer, position: int, header: BatchHeader, max_bytes: int) -> Buffer:
    """The uncompressed records of a magic 2 batch, as bytes where small."""
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
    for _ in range(count):
        try:
            span = _read_span(section, position, total)
        except IndexError:
            raise invalid("Incorrect declared batch size, premature EOF reached") from None
        yield span
        position = span.end
    if position != total:
        raise invalid("Incorrect declared batch size, records still remaining in file")


def _read_span(section: Buffer, position: int, total: int) -> Span:
    size, position = read_varint(section, position)
    end = position + size
    if size < 0 or end > total:
        raise invalid(f"Invalid record size: expected {size} bytes, but {total - position} are left in the batch")
    timestamp_delta, position = read_varlong(section, position + 1)
    offset_delta, position = read_varint(section, position)
    key_size, key_start = read_varint(section, position)
    position = key_start + key_size if key_size > 0 else key_start
    value_size, value_start = read_varint(section, position)
    position = value_start + value_size if value_size > 0 else value_start
    header_count, headers_start = read_varint(section, position)
    position = headers_start
    if header_count:
        position = _skip_headers(section, position, end, header_count)
    if position != end:
        raise invalid(f"Invalid record size: expected to read {size} bytes, but the fields end {end - position} early")
    return Span(
        offset_delta,
        timestamp_delta,
        key_start,
        key_start + key_size if key_size >= 0 else -1,
        value_start,
        value_start + value_size if value_size >= 0 else -1,
        headers_start,
        header_count,
        end,
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
    """A zigzag int32 and the position after it. IndexError at the end, INVALID_RECORD above 32 bits."""
    byte = section[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    return _read_long_varint(section, position, 32)


def read_varlong(section: Buffer, position: int) -> tuple[int, int]:
    """A zigzag int64 and the position after it. IndexError at the end, INVALID_RECORD above 64 bits."""
    byte = section[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    return _read_long_varint(section, position, 64)


def _read_long_varint(section: Buffer, position: int, bits: int) -> tuple[int, int]:
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
    if result >> bits:
        raise invalid(f"Varint is too large for {bits} bits")
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


def record_timestamp(header: BatchHeader, timestamp_delta: int) -> int:
    """With LogAppendTime every record has the batch's max timestamp, else its own."""
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp
    return header.base_timestamp + timestamp_delta


def iter_default_records(buffer: Buffer, header: BatchHeader, position: int, max_bytes: int) -> Iterator[Record]:
    if header.records_count == 0:
        return
    section = records_section(buffer, position, header, max_bytes)
    base_offset, base_sequence = header.base_offset, header.base_sequence
    for span in iter_spans(section, header):
        delta = span.offset_delta
        yield Record(
            base_offset + delta,
            record_timestamp(header, span.timestamp_delta),
            bytes(section[span.key_start : span.key_end]) if span.key_end >= 0 else None,
            bytes(section[span.value_start : span.value_end]) if span.value_end >= 0 else None,
            read_headers(section, span) if span.header_count else (),
            increment_sequence(base_sequence, delta) if base_sequence >= 0 else NO_SEQUENCE,
        )
