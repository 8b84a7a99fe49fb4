"""Records inside a magic 2 batch.

Rules: a batch is read strictly, as DefaultRecord.readFrom does: every length within its record, every record within
the batch, as many records as the header says and nothing after them; else INVALID_RECORD. Decompression is bounded by
`max_bytes` (MESSAGE_TOO_LARGE above it, CORRUPT_MESSAGE for bytes that do not decompress). A header may take two bytes
on the wire and a hundred as an object: how many are walked, and how many become objects, is bounded too. The CRC is not
checked here: `batch.verify_crc` does that.

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

RECORD_BYTES_MIN = 7
"""The smallest record of a magic 2 batch."""

COPY_MAX_BYTES = 1024 * 1024  # up to here, indexing a copy is faster than indexing a memoryview

READ_HEADERS_MAX = 100_000
"""Headers of one record that become objects: some 30 MB as they are shown. The others are only counted."""

HEADER_BYTES_MIN = 2
"""The smallest header: an empty key, and no value."""

Headers = tuple[tuple[str, bytes | None], ...]

NO_HEADERS = b"\0"
"""The headers of a record without any, as bytes."""


class Record(NamedTuple):
    """One record with its absolute offset. `sequence` is -1 without an idempotent producer.

    Header keys are text; bytes that are not UTF-8 become surrogates, and the same bytes again when written.
    `headers_left_out` counts those that were not read, because the reader has no use for them or there are too many.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    sequence: int = NO_SEQUENCE
    headers_left_out: int = 0


class CopiedRecord(NamedTuple):
    """A record that is written again as it was read. Its headers, count included, are the bytes of a magic 2 record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: bytes

    @staticmethod
    def of_legacy(record: Record) -> CopiedRecord:
        """A record of magic 0 or 1, which has no headers."""
        return CopiedRecord(record.offset, record.timestamp, record.key, record.value, NO_HEADERS)


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


def can_hold(section: Buffer, count: int) -> bool:
    """Whether so many records may be in so many uncompressed bytes."""
    return count * RECORD_BYTES_MIN <= len(section)


def iter_spans(section: Buffer, header: BatchHeader, headers_max: int = INT64_MAX) -> Iterator[Span]:
    """The place of every record of a magic 2 batch in `section`, checked strictly.

    MESSAGE_TOO_LARGE if the records have more than `headers_max` headers together.
    """
    count = header.records_count
    if count < 0:
        raise invalid(f"Found invalid record count {count} in magic v2 batch")
    if count == 0:
        return
    position, total = 0, len(section)
    stamped_by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    base_timestamp, append_time = header.base_timestamp, header.max_timestamp if stamped_by_broker else None
    headers_left = headers_max
    for _ in pausing(count):
        try:
            span = _read_span(section, position, total, (base_timestamp, append_time), headers_left)
        except IndexError:
            raise invalid("Incorrect declared batch size, premature EOF reached") from None
        headers_left -= span[7]
        yield span
        position = span[8]
    if position != total:
        raise invalid("Incorrect declared batch size, records still remaining in file")


def _read_span(section: Buffer, position: int, total: int, times: tuple[int, int | None], headers_left: int) -> Span:
    """One record. `times`: the base timestamp, and with LogAppendTime every record's timestamp, else None.

    One-byte varints, which are nearly all, are decoded in line: this is the innermost loop over records.
    """
    start = position
    base_timestamp, append_time = times
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
    position = headers_start
    if header_count:
        if header_count > headers_left:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "Too many record headers in a batch that must be read")
        position = _skip_headers(section, headers_start, end, header_count)
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
    """The position after `count` headers. Lengths of one byte, which are nearly all, are decoded in line."""
    if not 0 <= count <= end - position:
        raise invalid(f"Found invalid number of record headers {count}")
    for _ in range(count):
        byte = section[position]
        size, position = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
        if size < 0:
            raise invalid(f"Invalid negative header key size {size}")
        position += size
        byte = section[position]
        size, position = (_ZIGZAG[byte], position + 1) if byte < 0x80 else read_long_varint(section, position, 32)
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


def read_headers(section: Buffer, span: Span, count_max: int) -> Headers:
    """The headers of a record whose span has been checked, at most the first `count_max`."""
    headers: list[tuple[str, bytes | None]] = []
    position = span.headers_start
    for _ in range(min(span.header_count, count_max)):
        size, position = read_varint(section, position)
        key = str(bytes(section[position : position + size]), "utf-8", "surrogateescape")
        size, position = read_varint(section, position + size)
        value = bytes(section[position : position + size]) if size >= 0 else None
        position += max(size, 0)
        headers.append((key, value))
    return tuple(headers)


def iter_default_records(
    buffer: Buffer,
    header: BatchHeader,
    position: int,
    max_bytes: int,
    *,
    headers_max: int = INT64_MAX,
    read_headers_max: int = READ_HEADERS_MAX,
) -> Iterator[Record]:
    """The records of a magic 2 batch; see `record.iter_records`."""
    if header.records_count == 0:
        return
    section = records_section(buffer, position, header, max_bytes)
    base_offset, base_sequence = header.base_offset, header.base_sequence
    for span in iter_spans(section, header, headers_max):
        delta, timestamp, key_start, key_end, value_start, value_end, _, header_count, _ = span
        yield _make_record(
            (
                base_offset + delta,
                timestamp,
                bytes(section[key_start:key_end]) if key_end >= 0 else None,
                bytes(section[value_start:value_end]) if value_end >= 0 else None,
                read_headers(section, span, read_headers_max) if header_count else (),
                increment_sequence(base_sequence, delta) if base_sequence >= 0 else NO_SEQUENCE,
                max(header_count - read_headers_max, 0),
            )
        )
