"""How a leader checks batches that a client or coordinator appends, and assigns their offsets.

Pure counterpart of ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords and LogValidator. In the
common case (one magic 2 batch, nothing to convert, rules that need no record) the header and CRC are checked and the
batch is stamped in place; otherwise records are read one by one, and converted or recompressed if the topic requires
it.

Deliberate differences from Kafka: records are read only where the result depends on them (`AppendRules.opaque`), so a
wrong max timestamp or a malformed record within a sound batch is stored as sent; the records of a coordinator's batch
are never read; a batch whose records must be read is rejected if they take more than `max_uncompressed_bytes`, are
more than `max_checked_records`, or have more than `max_checked_headers`.
Not here: producer state, segment size, and which of these checks the topic's configuration requires.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kpybroker.wire.compression import Codec, UndecodableError, has_linked_lz4_blocks
from kpybroker.wire.constants import NO_TIMESTAMP, UNKNOWN_OFFSET
from kpybroker.wire.crc import crc32c
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import (
    ATTRIBUTES_OFFSET,
    CODEC_MASK,
    CONTROL_MASK,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    RECORD_BATCH_OVERHEAD,
    TRANSACTIONAL_MASK,
    V2_HEADER,
    BatchHeader,
    TimestampType,
    has_more_batches_than,
    iter_batches,
    set_max_timestamp,
    stamp,
    take_batches,
    verify_crc,
)
from kpybroker.wire.records.builder import BatchFields, varint
from kpybroker.wire.records.convert import rebuild
from kpybroker.wire.records.default_record import (
    CopiedRecord,
    can_hold,
    invalid,
    iter_spans,
    records_section,
)
from kpybroker.wire.records.legacy import iter_legacy_records, read_wrapper
from kpybroker.wire.records.record_errors import RecordErrors, RequestRecordsError

_SIMPLE_ATTRIBUTES = CODEC_MASK | TRANSACTIONAL_MASK
_STAMP = struct.Struct(">qii")  # base offset, batch length, leader epoch: how a magic 2 batch begins


class ValidatedRecords(NamedTuple):
    """What to write. `header` is the first batch's, as in `data`; None, with empty `data`, if no batch was complete.

    `data` is the given buffer (or its complete batches), stamped in place, unless `is_rebuilt` or it was read-only.
    `offset_of_max_timestamp` is the last offset of the batch with the largest timestamp. `log_append_time` is -1 with
    CreateTime.
    """

    data: Buffer
    header: BatchHeader | None
    first_offset: int
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    records_count: int
    log_append_time: int = NO_TIMESTAMP
    is_rebuilt: bool = False


class AppendContext(NamedTuple):
    """Where batches are appended. `from_client` is Kafka's AppendOrigin.CLIENT; errors name the `partition`."""

    base_offset: int
    now_ms: int
    leader_epoch: int
    from_client: bool = True
    partition: object = ""


def validate_fast(
    records: Buffer, rules: AppendRules, base_offset: int, leader_epoch: int, request_version: int | None
) -> ValidatedRecords | None:
    """One sound batch that only needs its offsets; None for any other, which `validate_and_assign` checks in full."""
    if not rules.fast:
        return None
    size = len(records)
    if size <= RECORD_BATCH_OVERHEAD:
        return None
    view = memoryview(records)
    fields = V2_HEADER.unpack_from(view)
    sent_offset, length, _, magic, crc, attributes, delta, _, max_timestamp, producer_id, _, sequence, count = fields
    if (
        magic != 2
        or sent_offset
        or length != size - LOG_OVERHEAD
        or size > rules.max_message_bytes
        or (attributes and not _are_simple_attributes(attributes, view, request_version))
        or (rules.codec is not None and rules.codec != attributes & CODEC_MASK)
        or delta < 0
        or count != delta + 1
        or sequence < 0 <= producer_id
        or crc32c(view[ATTRIBUTES_OFFSET:]) != crc
    ):
        return None
    if view.readonly:
        records = bytearray(records)
    _STAMP.pack_into(records, 0, base_offset, length, leader_epoch)
    last_offset = base_offset + delta
    validated = (
        records,
        tuple.__new__(BatchHeader, (base_offset, length, leader_epoch, *fields[3:])),
        base_offset,
        last_offset,
        max_timestamp,
        UNKNOWN_OFFSET if max_timestamp == NO_TIMESTAMP else last_offset,
        count,
        NO_TIMESTAMP,
        False,
    )
    return tuple.__new__(ValidatedRecords, validated)


def _are_simple_attributes(attributes: int, records: memoryview, request_version: int | None) -> bool:
    codec_id = attributes & CODEC_MASK
    if attributes & ~_SIMPLE_ATTRIBUTES:
        return False
    if codec_id == Codec.LZ4:
        return not has_linked_lz4_blocks(records, RECORD_BATCH_OVERHEAD)
    return codec_id < Codec.ZSTD or (codec_id == Codec.ZSTD and (request_version is None or request_version >= 7))


def validate_and_assign(
    records: Buffer, rules: AppendRules, call: AppendContext, request_version: int | None = None
) -> ValidatedRecords:
    """Check `records` and assign offsets from `call.base_offset`. Raises KafkaError, in particular
    RecordValidationError. `request_version` (of Produce) adds the rules of versions 3 and 7.
    """
    if has_more_batches_than(records, rules.max_checked_records):
        raise _too_many_records(rules)
    headers = [header for _, header in iter_batches(records)]
    if request_version is not None and request_version >= 3:
        _check_produce_request(headers, request_version)
    position = 0
    for header in headers:
        _check_sound(records, position, header, rules, call)
        position += header.size
    if not headers:
        return ValidatedRecords(b"", None, UNKNOWN_OFFSET, UNKNOWN_OFFSET, NO_TIMESTAMP, UNKNOWN_OFFSET, 0)
    first = headers[0]
    source_codec = next((header.codec for header in reversed(headers) if header.is_compressed), Codec.NONE)
    if len(headers) > 1 and (first.magic == 2 or source_codec is not Codec.NONE):
        raise invalid(f"Compressed outer record has more than one batch in topic partition {call.partition}")
    for header in headers:
        _check_batch(first, header, rules, call)
    codec = source_codec if rules.codec is None else rules.codec
    if codec is not source_codec and source_codec is Codec.NONE and first.is_control:
        codec = Codec.NONE
    if first.magic == rules.to_magic == 2 and codec is source_codec:
        return _validate_in_place(memoryview(records)[: first.size], first, codec, rules, call)
    return _validate_and_rebuild(records, headers, codec, rules, call)


# --- batches


def _zstd_needs_version_7(request_version: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        f"Produce requests with version {request_version} are not allowed to use ZStandard compression",
    )


def _check_produce_request(headers: list[BatchHeader], request_version: int) -> None:
    """ProduceRequest.validateRecords: from version 3 on, exactly one batch, of magic 2."""
    rule = f"Produce requests with version {request_version} are only allowed to contain"
    if not headers:
        raise RequestRecordsError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {request_version} must have at least one record batch per partition",
        )
    first = headers[0]
    if first.magic != 2:
        raise RequestRecordsError(ErrorCode.INVALID_RECORD, f"{rule} record batches with magic version 2")
    codec_id = first.attributes & CODEC_MASK
    if request_version < 7 and codec_id > Codec.ZSTD:
        raise RequestRecordsError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec_id}")
    if request_version < 7 and codec_id == Codec.ZSTD:
        error = _zstd_needs_version_7(request_version)
        raise RequestRecordsError(error.code, error.message)
    if len(headers) > 1:
        raise RequestRecordsError(ErrorCode.INVALID_RECORD, f"{rule} exactly one record batch per partition")


def _check_sound(records: Buffer, position: int, header: BatchHeader, rules: AppendRules, call: AppendContext) -> None:
    """UnifiedLog.analyzeAndValidateRecords: base offset, size, CRC, codec, in this order."""
    if call.from_client and header.base_offset != 0 and header.magic == 2:
        raise invalid(
            f"The baseOffset of the record batch in the append to {call.partition} should be 0, but it is "
            f"{header.base_offset}"
        )
    _check_size(header.size, rules, call)
    verify_crc(records, position, header)
    codec_id = header.attributes & CODEC_MASK
    if codec_id == Codec.LZ4 and header.magic == 2:
        if has_linked_lz4_blocks(records, position + RECORD_BATCH_OVERHEAD):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Dependent LZ4 block stream is unsupported")
    elif codec_id > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec_id}")


def _check_size(size: int, rules: AppendRules, call: AppendContext) -> None:
    if size > rules.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {call.partition} is {size} bytes which exceeds the maximum "
            f"configured value of {rules.max_message_bytes}.",
        )


def _check_batch(first: BatchHeader, header: BatchHeader, rules: AppendRules, call: AppendContext) -> None:
    """LogValidator.validateBatch."""
    if header.magic != first.magic:
        raise invalid(
            f"Batch magic {header.magic} is not the same as the first batch's magic byte {first.magic} in topic "
            f"partition {call.partition}"
        )
    if call.from_client:
        problem = _client_batch_problem(header)
        if problem is not None:
            raise invalid(f"{problem} in topic partition {call.partition}")
    if rules.to_magic < 2 and (header.is_transactional or header.has_producer_id):
        kind = "Transactional" if header.is_transactional else "Idempotent"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{kind} records cannot be used with magic version {rules.to_magic}",
        )


def _client_batch_problem(header: BatchHeader) -> str | None:
    if header.magic == 2:
        delta, count = header.last_offset_delta, header.records_count
        if delta < 0:
            return f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}]"
        if count <= 0:
            return f"Invalid reported count for record batch: {count}"
        if delta + 1 != count:
            return (
                f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records "
                f"{count}"
            )
    if header.attributes & CONTROL_MASK:
        return "Clients are not allowed to write control records"
    if header.producer_id >= 0 and header.base_sequence < 0:
        return f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
    return None


# --- records


def _too_many_records(rules: AppendRules) -> KafkaError:
    message = f"More than {rules.max_checked_records} records in a batch that must be validated one by one"
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)


# --- in place


def _validate_in_place(
    records: memoryview, header: BatchHeader, codec: Codec, rules: AppendRules, call: AppendContext
) -> ValidatedRecords:
    """One magic 2 batch in the right codec: check its records if the rules require it, and stamp it.

    A compressed batch whose offsets have gaps is rebuilt, as Kafka does for the sake of old clients.
    """
    sent_create_time = header.timestamp_type is TimestampType.CREATE_TIME
    if not call.from_client or (rules.opaque and sent_create_time):
        return _assign_in_place(records, header, header.max_timestamp, header.records_count, rules, call)
    section = _section(records, header, rules)
    errors = RecordErrors(header, rules, call.now_ms, call.partition)
    max_timestamp, index, is_dense = NO_TIMESTAMP, 0, True
    for span in iter_spans(section, header, rules.max_checked_headers):
        timestamp = span.timestamp
        errors.check(index, span.offset_delta, timestamp, span.key_end >= 0)
        max_timestamp = max(max_timestamp, timestamp)
        is_dense = is_dense and span.offset_delta == index
        index += 1
    errors.finish()
    if codec is not Codec.NONE and not is_dense:
        return _validate_and_rebuild(records, [header], codec, rules, call)
    return _assign_in_place(records, header, max_timestamp, index, rules, call)


def _assign_in_place(
    records: Buffer,
    header: BatchHeader,
    max_timestamp: int,
    records_count: int,
    rules: AppendRules,
    call: AppendContext,
) -> ValidatedRecords:
    if isinstance(records, bytes) or (isinstance(records, memoryview) and records.readonly):
        records = bytearray(records)
    log_append_time = NO_TIMESTAMP
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = log_append_time = call.now_ms
    stamp(records, 0, call.base_offset, call.leader_epoch)
    header = BatchHeader._make((call.base_offset, header[1], call.leader_epoch, *header[3:]))
    if max_timestamp != header.max_timestamp or header.timestamp_type is not rules.timestamp_type:
        header = set_max_timestamp(records, 0, header, rules.timestamp_type, max_timestamp)
    last_offset = header.last_offset
    return ValidatedRecords(
        records,
        header,
        call.base_offset,
        last_offset,
        max_timestamp,
        UNKNOWN_OFFSET if max_timestamp == NO_TIMESTAMP else last_offset,
        records_count,
        log_append_time,
    )


def _section(records: Buffer, header: BatchHeader, rules: AppendRules, position: int = 0) -> Buffer:
    """A magic 2 batch's records. Bytes that do not decompress are UNKNOWN_SERVER_ERROR, as in Kafka.

    MESSAGE_TOO_LARGE above the rules' bounds.
    """
    try:
        section = records_section(records, position, header, rules.max_uncompressed_bytes)
    except UndecodableError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
    if not can_hold(section, header.records_count):
        raise invalid(f"{len(section)} bytes do not hold {header.records_count} records")
    if header.records_count > rules.max_checked_records:
        raise _too_many_records(rules)
    return section


# --- rebuilt


def _validate_and_rebuild(
    records: Buffer,
    headers: list[BatchHeader],
    codec: Codec,
    rules: AppendRules,
    call: AppendContext,
) -> ValidatedRecords:
    """Conversion and recompression: check every record, then build one new batch (or message set) of them all.

    Empties `headers`.
    """
    source = headers[0]
    kept: list[CopiedRecord] = []
    for position, header in take_batches(headers):
        errors = RecordErrors(header, rules, call.now_ms, call.partition)
        for index, record in enumerate(_checked_records(records, position, header, rules, errors)):
            errors.check(index, record.offset, record.timestamp, record.key is not None)
            kept.append(CopiedRecord(call.base_offset + len(kept), *record[1:]))
        errors.finish()
    _check_buildable(kept, source)
    log_append = rules.timestamp_type is TimestampType.LOG_APPEND_TIME and rules.to_magic > 0
    fields = BatchFields(
        codec=codec,
        level=rules.level,
        timestamp_type=rules.timestamp_type,
        log_append_time=call.now_ms,
        producer_id=source.producer_id,
        producer_epoch=source.producer_epoch,
        base_sequence=source.base_sequence,
        is_transactional=source.is_transactional,
        partition_leader_epoch=call.leader_epoch,
    )
    data = rebuild(kept, rules.to_magic, fields)
    return _describe_rebuilt(data, len(kept), log_append, rules, call)


def _check_buildable(records: list[CopiedRecord], source: BatchHeader) -> None:
    """Raises UNKNOWN_SERVER_ERROR for what MemoryRecordsBuilder refuses to write, as Kafka does."""
    problem = None
    if source.producer_id != NO_PRODUCER_ID and source.producer_epoch == NO_PRODUCER_EPOCH:
        problem = "Invalid negative producer epoch"
    elif source.producer_id == NO_PRODUCER_ID and source.is_transactional:
        problem = "Cannot write transactional messages without a valid producer ID"
    elif any(record.timestamp < NO_TIMESTAMP for record in records):
        problem = "Invalid negative timestamp"
    if problem is not None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)


def _checked_records(
    records: Buffer, position: int, header: BatchHeader, rules: AppendRules, errors: RecordErrors
) -> Iterator[CopiedRecord]:
    """The records to convert; each message of a compressed wrapper has its own CRC checked."""
    if header.magic == 2:
        section = _section(records, header, rules, position)
        for span in iter_spans(section, header, rules.max_checked_headers):
            yield CopiedRecord(
                header.base_offset + span.offset_delta,
                span.timestamp,
                bytes(section[span.key_start : span.key_end]) if span.key_end >= 0 else None,
                bytes(section[span.value_start : span.value_end]) if span.value_end >= 0 else None,
                varint(span.header_count) + section[span.headers_start : span.end],
            )
    elif not header.is_compressed:
        yield from map(CopiedRecord.of_legacy, iter_legacy_records(records, header, position))
    else:
        try:
            messages = read_wrapper(
                records,
                header,
                position,
                max_bytes=rules.max_uncompressed_bytes,
                check_crc=True,
                max_records=rules.max_checked_records,
            )
        except UndecodableError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
        for index, message in enumerate(messages):
            if message.magic != header.magic:
                errors.add(index, f"Record's magic does not match outer magic {header.magic}")
            yield CopiedRecord.of_legacy(message.record)


def _describe_rebuilt(
    data: bytearray, records_count: int, log_append: bool, rules: AppendRules, call: AppendContext
) -> ValidatedRecords:
    """MemoryRecordsBuilder.info: the first batch that has the largest timestamp, by its last offset."""
    max_timestamp, offset_of_max_timestamp = NO_TIMESTAMP, UNKNOWN_OFFSET
    first: BatchHeader | None = None
    for _, header in iter_batches(data, strict=True):
        _check_size(header.size, rules, call)
        first = header if first is None else first
        if header.max_timestamp > max_timestamp:
            max_timestamp, offset_of_max_timestamp = header.max_timestamp, header.last_offset
    return ValidatedRecords(
        data,
        first,
        call.base_offset,
        call.base_offset + records_count - 1,
        max_timestamp,
        offset_of_max_timestamp,
        records_count,
        call.now_ms if log_append else NO_TIMESTAMP,
        is_rebuilt=True,
    )
