"""Record batch headers: parse, check, stamp. Produce, fetch, replication and recovery mostly need no more.

Rules: nothing here reads a record or decompresses; nothing copies batch bytes; only `stamp` and `set_max_timestamp`
write, and both write in place. A magic 0/1 message (a compressed wrapper too) is one batch, as in Kafka's
AbstractLegacyRecordBatch, and is described by the same `BatchHeader`.

Layout of magic 2 (DefaultRecordBatch), big endian: base offset 8, batch length 4, partition leader epoch 4, magic 1,
CRC-32C 4 (over everything after it), attributes 2, last offset delta 4, base timestamp 8, max timestamp 8,
producer id 8, producer epoch 2, base sequence 4, records count 4. Magic 0/1 (LegacyRecord): offset 8, size 4,
CRC-32 4 (over everything after it), magic 1, attributes 1, timestamp 8 (magic 1 only), key, value.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from kpybroker.wire.compression import Codec
from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.crc import crc32c
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

LOG_OVERHEAD = 12  # base offset and length, which the length itself does not count
MAGIC_OFFSET = 16
HEADER_SIZE_UP_TO_MAGIC = 17
RECORD_BATCH_OVERHEAD = 61
LEGACY_OVERHEAD_V0 = 14  # CRC, magic, attributes, key length, value length
LEGACY_OVERHEAD_V1 = 22

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
_USED_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_MASK | CONTROL_MASK | DELETE_HORIZON_MASK  # and the timestamp type

_CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21
_MAX_TIMESTAMP_OFFSET = 35
_LEGACY_CRC_OFFSET = 12
LEGACY_ATTRIBUTES_OFFSET = 17
_LEGACY_TIMESTAMP_OFFSET = 18

V2_HEADER = struct.Struct(">qiibIhiqqqhii")
_LEGACY = struct.Struct(">qiIbB")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")

assert V2_HEADER.size == RECORD_BATCH_OVERHEAD

_CODECS = tuple(Codec)


class TimestampType(IntEnum):
    """What a batch's timestamps mean; the ids are the attribute bit's two values."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_TIMESTAMP_TYPES = tuple(TimestampType)


class BatchHeader(NamedTuple):
    """The fixed part of one batch. A tuple, because building one must cost well under a microsecond.

    For magic 0/1, `base_offset` is the offset field as stored (for a compressed wrapper: its *last* offset),
    `records_count` is -1 (unknown without decompressing a wrapper), `last_offset_delta` 0, both timestamps the
    message's own (-1 for magic 0), and the fields that magic 2 introduced hold their "none" values; `attributes` keeps
    only the bits that the magic defines.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record; for magic 0/1 the stored offset."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        """The codec of the attributes. Raises CORRUPT_MESSAGE for the three ids that are not assigned."""
        codec_id = self.attributes & CODEC_MASK
        if codec_id >= len(_CODECS):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Unknown compression type id: {codec_id}")
        return _CODECS[codec_id]

    @property
    def is_compressed(self) -> bool:
        """Whether the attributes name a codec, valid or not."""
        return self.attributes & CODEC_MASK != 0

    @property
    def timestamp_type(self) -> TimestampType:
        """CreateTime or LogAppendTime, from the attributes."""
        return _TIMESTAMP_TYPES[(self.attributes & TIMESTAMP_TYPE_MASK) >> 3]

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record instead of data."""
        return self.attributes & CONTROL_MASK != 0

    @property
    def has_delete_horizon(self) -> bool:
        """KIP-534: the base timestamp is the time from which tombstones and markers may be removed."""
        return self.attributes & DELETE_HORIZON_MASK != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, which wraps from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """`sequence + increment` in the producers' number space 0 .. 2^31 - 1 (DefaultRecordBatch.incrementSequence)."""
    return (sequence + increment) & 0x7FFFFFFF


def corrupt(message: str) -> KafkaError:
    """A KafkaError with CORRUPT_MESSAGE, to be raised."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, with length and magic checked; the batch may end outside the buffer.

    Raises CORRUPT_MESSAGE, also if the buffer ends within the header.
    """
    try:
        header = BatchHeader._make(V2_HEADER.unpack_from(buffer, position))
    except struct.error:
        return _parse_legacy_header(buffer, position)
    if header.magic != 2:
        return _parse_legacy_header(buffer, position)
    if header.batch_length < RECORD_BATCH_OVERHEAD - LOG_OVERHEAD:
        raise corrupt(
            f"Record batch is corrupt (the size {header.size} is smaller than the minimum allowed overhead "
            f"{RECORD_BATCH_OVERHEAD})"
        )
    return header


def _parse_legacy_header(buffer: Buffer, position: int) -> BatchHeader:
    if len(buffer) - position < _LEGACY.size:
        raise corrupt("Record batch is cut off within its header")
    offset, size, crc, magic, attributes = _LEGACY.unpack_from(buffer, position)
    if not 0 <= magic <= 2:
        raise corrupt(f"Invalid magic found in record: {magic}")
    if magic == 2:
        raise corrupt("Record batch is cut off within its header")
    minimum = LEGACY_OVERHEAD_V0 if magic == 0 else LEGACY_OVERHEAD_V1
    if size < minimum:
        raise corrupt(f"Record size {size} is less than the minimum record overhead ({minimum})")
    if magic == 0:
        return _legacy_header(offset, size, 0, crc, attributes & CODEC_MASK, NO_TIMESTAMP)
    if len(buffer) - position < _LEGACY_TIMESTAMP_OFFSET + 8:
        raise corrupt("Record batch is cut off within its header")
    (timestamp,) = _INT64.unpack_from(buffer, position + _LEGACY_TIMESTAMP_OFFSET)
    return _legacy_header(offset, size, 1, crc, attributes & (CODEC_MASK | TIMESTAMP_TYPE_MASK), timestamp)


def _legacy_header(offset: int, size: int, magic: int, crc: int, attributes: int, timestamp: int) -> BatchHeader:
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=-1,
    )


def iter_batches(buffer: Buffer, position: int = 0, *, strict: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every batch that is complete in the buffer.

    A truncated last batch ends the iteration, since a fetch may end in one; with `strict` it raises
    CORRUPT_MESSAGE. An invalid header raises CORRUPT_MESSAGE in both cases.
    """
    end = len(buffer)
    while position < end:
        if end - position < HEADER_SIZE_UP_TO_MAGIC:
            break
        length = _INT32.unpack_from(buffer, position + 8)[0]
        if length < LEGACY_OVERHEAD_V0:
            raise corrupt(f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD_V0})")
        if length + LOG_OVERHEAD > end - position:
            break
        header = parse_header(buffer, position)
        yield position, header
        position += length + LOG_OVERHEAD
    if strict and position != end:
        raise corrupt(f"{end - position} bytes after the last whole record batch")


def has_more_batches_than(buffer: Buffer, count: int) -> bool:
    """Whether more than `count` batches or messages follow one another, seen by their lengths without a header each."""
    position, end = 0, len(buffer)
    if end <= count * (LOG_OVERHEAD + LEGACY_OVERHEAD_V0):
        return False
    for _ in range(count + 1):
        if end - position < HEADER_SIZE_UP_TO_MAGIC:
            return False
        length = _INT32.unpack_from(buffer, position + 8)[0]
        position += length + LOG_OVERHEAD
        if length < LEGACY_OVERHEAD_V0 or position > end:
            return False
    return True


def take_batches(headers: list[BatchHeader]) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of batches that fill their buffer from its start. Empties the list on the way: a hundred
    thousand headers need not live as long as the records that are made from them.
    """
    position = 0
    headers.reverse()
    while headers:
        header = headers.pop()
        yield position, header
        position += header.size


def computed_crc(buffer: Buffer, position: int, header: BatchHeader) -> int:
    """The checksum of the batch's bytes: CRC-32C for magic 2, CRC-32 below."""
    view = memoryview(buffer)
    if header.magic == 2:
        return crc32c(view[position + ATTRIBUTES_OFFSET : position + header.batch_length + LOG_OVERHEAD])
    return zlib.crc32(view[position + MAGIC_OFFSET : position + header.batch_length + LOG_OVERHEAD])


def verify_crc(buffer: Buffer, position: int, header: BatchHeader) -> None:
    """Raises CORRUPT_MESSAGE if stored and computed checksum differ, or the batch is not complete in the buffer."""
    if len(buffer) - position < header.batch_length + LOG_OVERHEAD:
        raise corrupt("Record batch is cut off")
    computed = computed_crc(buffer, position, header)
    if computed != header.crc:
        raise corrupt(f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})")


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and partition leader epoch of a magic 2 batch; its CRC covers neither."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LOG_OVERHEAD, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    timestamp_type: TimestampType,
    max_timestamp: int,
) -> BatchHeader:
    """Write timestamp type and max timestamp in place, compute the CRC again, and return the new header.

    With LOG_APPEND_TIME every record of the batch has `max_timestamp` as its timestamp. For magic 1 this is the
    message's (or wrapper's) timestamp. Nothing is written when nothing changes, else unused attributes are cleared.
    Magic 0 has no timestamp.
    """
    if header.magic == 0:
        raise ValueError("a magic 0 message has no timestamp")
    if header.timestamp_type == timestamp_type and header.max_timestamp == max_timestamp:
        return header
    attributes = header.attributes & _USED_ATTRIBUTES | timestamp_type << 3
    if header.magic == 1:
        buffer[position + LEGACY_ATTRIBUTES_OFFSET] = attributes
        _INT64.pack_into(buffer, position + _LEGACY_TIMESTAMP_OFFSET, max_timestamp)
    else:
        _INT16.pack_into(buffer, position + ATTRIBUTES_OFFSET, attributes)
        _INT64.pack_into(buffer, position + _MAX_TIMESTAMP_OFFSET, max_timestamp)
    crc = computed_crc(buffer, position, header)
    _UINT32.pack_into(buffer, position + (_LEGACY_CRC_OFFSET if header.magic == 1 else _CRC_OFFSET), crc)
    return parse_header(buffer, position)
