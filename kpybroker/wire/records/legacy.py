"""Message sets of magic 0 and 1: single messages and compressed wrappers, read and built.

A compressed wrapper is a message whose value is the compressed message set of its inner messages. Inner offsets are
absolute in magic 0; in magic 1 they count from 0 and the wrapper's offset is the last inner message's absolute one
(KIP-31). A wrapper with LogAppendTime gives its timestamp to every inner message (KIP-32).

Rules: every length must fit its message, and inner messages must not be compressed again (INVALID_RECORD). With
`check_crc` inner CRCs are checked, as Kafka does on the leader's append (CORRUPT_MESSAGE).
Not here: idempotence, transactions, record headers and zstd, which these magics do not have.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kpybroker.wire.compression import Codec, compress, decompress
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import (
    LEGACY_OVERHEAD_V0,
    LOG_OVERHEAD,
    BatchHeader,
    TimestampType,
    computed_crc,
    corrupt,
    has_more_batches_than,
    parse_header,
    take_batches,
)
from kpybroker.wire.records.default_record import DEFAULT_MAX_BYTES, CopiedRecord, Record, invalid

_INT32 = struct.Struct(">i")
_OFFSET_SIZE_CRC = struct.Struct(">qiI")
_MAGIC_ATTRIBUTES = struct.Struct(">bb")
_MAGIC_ATTRIBUTES_TIMESTAMP = struct.Struct(">bbq")
_KEY_OFFSET = {0: 18, 1: 26}  # of the key's length, from the start of the message


class InnerMessage(NamedTuple):
    """The magic that a message has in its set, and its record with absolute offset and resolved timestamp."""

    magic: int
    record: Record


def iter_legacy_records(
    buffer: Buffer, header: BatchHeader, position: int = 0, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> Iterator[Record]:
    """The record of a single message, or those within a compressed wrapper."""
    if not header.is_compressed:
        yield _read_message(buffer, position, header, header.base_offset, header.max_timestamp)
        return
    for message in read_wrapper(buffer, header, position, max_bytes=max_bytes):
        yield message.record


def read_wrapper(
    buffer: Buffer,
    header: BatchHeader,
    position: int = 0,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    check_crc: bool = False,
    max_records: int | None = None,
) -> Iterator[InnerMessage]:
    """The messages within a compressed wrapper (AbstractLegacyRecordBatch.DeepRecordsIterator).

    A cut-off last inner message is left out, as Kafka does. With `check_crc` a wrong inner CRC raises CORRUPT_MESSAGE.
    More than `max_records` messages are MESSAGE_TOO_LARGE. What is wrong with the wrapper is raised at once, what is
    wrong with a message when it is reached.
    """
    if header.codec is Codec.ZSTD:
        raise invalid(f"Invalid wrapper compression type zstd with magic {header.magic}")
    content = _message_value(buffer, position, header)
    if content is None:
        raise invalid(f"Found invalid compressed record set with null value (magic = {header.magic})")
    inner_set = decompress(header.codec, content, max_bytes, header.magic)
    if max_records is not None and has_more_batches_than(inner_set, max_records):
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"More than {max_records} messages in a compressed one")
    headers = list(_iter_messages(inner_set))
    if not headers:
        raise invalid("Found invalid compressed record set with no inner records")
    base_offset = _inner_base_offset(header, headers[-1].base_offset)
    return _read_messages(inner_set, headers, header, base_offset, check_crc)


def _read_messages(
    inner_set: Buffer, headers: list[BatchHeader], wrapper: BatchHeader, base_offset: int, check_crc: bool
) -> Iterator[InnerMessage]:
    for position, inner in take_batches(headers):
        if inner.is_compressed:
            raise invalid("Inner messages must not be compressed")
        if check_crc and computed_crc(inner_set, position, inner) != inner.crc:
            raise corrupt(f"Inner message at offset {inner.base_offset} is corrupt (stored crc = {inner.crc})")
        timestamp = inner.max_timestamp
        if inner.magic == 1 and wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp = wrapper.max_timestamp
        record = _read_message(inner_set, position, inner, base_offset + inner.base_offset, timestamp)
        yield InnerMessage(inner.magic, record)


def _iter_messages(inner_set: Buffer) -> Iterator[BatchHeader]:
    position, end = 0, len(inner_set)
    while end - position >= LOG_OVERHEAD:
        (size,) = _INT32.unpack_from(inner_set, position + 8)
        if size < LEGACY_OVERHEAD_V0:
            raise corrupt(f"Record size is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})")
        if size > end - position - LOG_OVERHEAD:
            return
        header = parse_header(inner_set, position)
        if header.magic > 1:
            raise invalid(f"Message of magic {header.magic} within a compressed message")
        yield header
        position += header.size


def _inner_base_offset(wrapper: BatchHeader, last_inner_offset: int) -> int:
    """What to add to inner offsets: 0 for magic 0, which has absolute ones."""
    if wrapper.magic == 0 or wrapper.base_offset == 0:
        return 0  # some librdkafka versions produce a wrapper offset of 0
    if wrapper.base_offset < last_inner_offset:
        raise invalid(
            f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{wrapper.base_offset}' is "
            f"less than the last inner message offset '{last_inner_offset}' and it is not zero."
        )
    return wrapper.base_offset - last_inner_offset


def _read_message(buffer: Buffer, position: int, header: BatchHeader, offset: int, timestamp: int) -> Record:
    key_start, key_size, value_start, value_size = _locate(buffer, position, header)
    key = None if key_size < 0 else bytes(buffer[key_start : key_start + key_size])
    value = None if value_size < 0 else bytes(buffer[value_start : value_start + value_size])
    return Record(offset, timestamp, key, value)


def _message_value(buffer: Buffer, position: int, header: BatchHeader) -> memoryview | None:
    _, _, start, size = _locate(buffer, position, header)
    return None if size < 0 else memoryview(buffer)[start : start + size]


def _locate(buffer: Buffer, position: int, header: BatchHeader) -> tuple[int, int, int, int]:
    """Start and length of key and value (-1 null), which must fill the message exactly."""
    end = position + header.size
    if len(buffer) < end:
        raise corrupt("Record batch is cut off")
    key_start = position + _KEY_OFFSET[header.magic] + _INT32.size
    (key_size,) = _INT32.unpack_from(buffer, key_start - _INT32.size)
    value_start = key_start + max(key_size, 0) + _INT32.size
    if value_start > end:
        raise invalid(f"Message key of {key_size} bytes does not fit into its message")
    (value_size,) = _INT32.unpack_from(buffer, value_start - _INT32.size)
    if value_start + max(value_size, 0) != end:
        raise invalid(f"Message value of {value_size} bytes does not fill its message")
    return key_start, key_size, value_start, value_size


def build_message_set(
    records: Sequence[Record] | Sequence[CopiedRecord],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
) -> bytearray:
    """Messages at the records' offsets, which must rise: one after the other, or with a codec inside one wrapper.

    Record headers are dropped; magic 0 drops timestamps. `log_append_time` is every message's timestamp with
    LOG_APPEND_TIME.
    """
    if not records:
        raise ValueError("a message set needs a record")
    if magic == 0:
        timestamp_type = TimestampType.CREATE_TIME
    fixed = log_append_time if timestamp_type is TimestampType.LOG_APPEND_TIME else None
    first_offset = records[0].offset if codec is not Codec.NONE and magic == 1 else 0
    messages = bytearray()
    previous = records[0].offset - 1
    for record in records:
        if record.offset <= previous:
            raise ValueError(f"offset {record.offset} does not rise above {previous}")
        previous = record.offset
        timestamp = record.timestamp if fixed is None else fixed
        messages += encode_message(
            record.offset - first_offset, magic, timestamp_type << 3, timestamp, record.key, record.value
        )
    if codec is Codec.NONE:
        return messages
    timestamp = max(record.timestamp for record in records) if fixed is None else fixed
    content = compress(codec, messages, level, magic)
    return encode_message(previous, magic, codec | timestamp_type << 3, timestamp, None, content)


def encode_message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytearray:
    """One message, its CRC included; `timestamp` is ignored for magic 0."""
    if magic == 0:
        body = bytearray(_MAGIC_ATTRIBUTES.pack(magic, attributes))
    else:
        body = bytearray(_MAGIC_ATTRIBUTES_TIMESTAMP.pack(magic, attributes, timestamp))
    for field in (key, value):
        if field is None:
            body += b"\xff\xff\xff\xff"
        else:
            body += _INT32.pack(len(field))
            body += field
    message = bytearray(_OFFSET_SIZE_CRC.pack(offset, len(body) + 4, zlib.crc32(body)))
    message += body
    return message
