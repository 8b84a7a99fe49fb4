"""Conversion between message formats: down for old consumers, up (and between codecs) for batches that producers send.

Down-conversion keeps what RecordsUtil.downConvert and LazyDownConversionRecords do: control batches are dropped, record
headers are dropped, the codec stays, zstd cannot be converted, and records of an uncompressed batch before the fetch
offset are left out, because each old message is a batch of its own (some librdkafka versions rely on it).
Deliberate difference: the result ends at a batch boundary, where Kafka may cut a message to keep its promised size.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import (
    LOG_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    iter_batches,
)
from kpybroker.wire.records.builder import BatchFields, build_batch_of
from kpybroker.wire.records.default_record import DEFAULT_MAX_BYTES, CopiedRecord
from kpybroker.wire.records.legacy import build_message_set
from kpybroker.wire.records.record import iter_records

OVERFLOW_MESSAGE = struct.pack(">qi", -1, RECORD_BATCH_OVERHEAD)
"""A message longer than the response: an old consumer takes it as: nothing fitted (LazyDownConversionRecordsSend)."""

CONVERTED_RECORDS_MAX = 200_000
"""Records that may exist as objects at once: some 60 MB."""

CONVERTED_HEADERS_MAX = 500_000
"""Headers that are walked for it. They are left out, and so never become objects."""

assert len(OVERFLOW_MESSAGE) == LOG_OVERHEAD


def needs_down_conversion(buffer: Buffer, to_magic: int) -> bool:
    """Whether any batch is of a newer format than `to_magic`."""
    return any(header.magic > to_magic for _, header in iter_batches(buffer))


def down_convert(buffer: Buffer, to_magic: int, first_offset: int, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Batches as messages of magic 0 or 1, about as long as `buffer`, but at least one batch.

    `first_offset` is the fetch offset. UNSUPPORTED_COMPRESSION_TYPE if the first batch to convert is zstd, or has more
    than CONVERTED_RECORDS_MAX records; a later one ends the result, so that the consumer gets the error when it reads
    from there. If no batch has an equivalent, the result is `OVERFLOW_MESSAGE`. `max_bytes` bounds a batch's
    uncompressed size, CONVERTED_HEADERS_MAX its headers: MESSAGE_TOO_LARGE.
    """
    converted = bytearray()
    is_empty = True
    for position, header in iter_batches(buffer):
        is_empty = False
        try:
            part = _down_convert_batch(buffer, position, header, to_magic, first_offset, max_bytes)
        except KafkaError as error:
            if converted and error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                break
            raise
        if converted and len(converted) + len(part) > len(buffer):
            break
        converted += part
    if not converted and not is_empty:
        return OVERFLOW_MESSAGE
    return bytes(converted)


def _down_convert_batch(
    buffer: Buffer, position: int, header: BatchHeader, to_magic: int, first_offset: int, max_bytes: int
) -> Buffer:
    if header.is_control:
        return b""
    codec = header.codec
    if codec is Codec.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "Down-conversion of zstandard-compressed batches is not supported",
        )
    if header.records_count > CONVERTED_RECORDS_MAX:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Down-conversion of batches of more than {CONVERTED_RECORDS_MAX} records is not supported",
        )
    if header.magic <= to_magic:
        return memoryview(buffer)[position : position + header.size]
    records = [
        record
        for record in iter_records(
            buffer,
            header,
            position,
            max_bytes=max_bytes,
            headers_max=CONVERTED_HEADERS_MAX,
            read_headers_max=0,
        )
        if codec is not Codec.NONE or record.offset >= first_offset
    ]
    if not records:
        return b""
    try:
        return build_message_set(
            records,
            to_magic,
            codec=codec,
            timestamp_type=header.timestamp_type,
            log_append_time=header.max_timestamp,
        )
    except ValueError as error:
        # Offsets that do not rise, in a batch that was stored unread; Kafka's IllegalArgumentException.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None


def rebuild(records: Sequence[CopiedRecord], to_magic: int, fields: BatchFields) -> bytearray:
    """Records of one append as the log stores them, at their offsets.

    One magic 2 batch with `fields`, or a message set of magic 0 or 1, which has no producer or epoch. Up-conversion of
    old produce requests and recompression are the same thing (LogValidator.buildRecordsAndAssignOffsets).
    """
    if to_magic == 2:
        return build_batch_of(records, fields)
    return build_message_set(
        records,
        to_magic,
        codec=fields.codec,
        level=fields.level,
        timestamp_type=fields.timestamp_type,
        log_append_time=fields.log_append_time,
    )
