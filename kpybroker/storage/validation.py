"""What is checked of batches before they are appended, and what they become.

`validate_leader` gives a producer's or coordinator's batch its offsets (LogValidator, and the checks of
UnifiedLog that come before it); `analyze_follower` takes batches that have theirs. Neither looks at a log;
both raise KafkaError with Kafka's codes. Records are walked only where the answer depends on them
(`is_opaque`); the walk is wire/records/validate.
"""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.config.topic import LogConfig
from kpybroker.config.values import LONG_MAX
from kpybroker.core.producer_state import (
    AppendOrigin,
)
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    iter_batches,
    parse_header,
    stamp,
    verify_crc,
)

UNKNOWN_OFFSET = -1
MAX_CODEC_ID = 4


class LeaderBatch(NamedTuple):
    """One batch, checked and stamped. `log_append_time` is -1 unless the topic's timestamps are the broker's."""

    data: Buffer
    header: BatchHeader
    log_append_time: int = NO_TIMESTAMP
    records_converted: int = 0


class FollowerBatches(NamedTuple):
    """Batches that come with their offsets."""

    headers: list[tuple[int, BatchHeader]]
    first_offset: int
    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    valid_bytes: int


def is_opaque(config: LogConfig) -> bool:
    """Whether Kafka's answer to a batch depends on its header only, so that its records need not be walked."""
    return (
        config.compression_type == "producer"
        and not config.compact
        and config.message_timestamp_type == "CreateTime"
        and config.message_timestamp_before_max_ms == LONG_MAX
        and config.message_timestamp_after_max_ms == LONG_MAX
    )


def validate_leader(
    records: Buffer,
    first_offset: int,
    leader_epoch: int,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin,
    opaque: bool,
    partition: object,
) -> LeaderBatch:
    """Check what a producer or coordinator sent and give it its offsets (LogValidator). Raises KafkaError.

    A single batch of magic 2 on an `opaque` topic is stamped as it is; anything else is walked.
    """
    header = parse_header(records)
    if not opaque or header.magic != 2 or header.batch_length + LOG_OVERHEAD != len(records):
        return _validate_walking(records, first_offset, leader_epoch, config, now_ms, origin, partition)
    if len(records) > config.max_message_bytes:
        raise _too_large(len(records), config, partition)
    verify_crc(records, 0, header)
    if origin is AppendOrigin.CLIENT:
        _check_client_header(header, partition)
    if isinstance(records, bytes) or (isinstance(records, memoryview) and records.readonly):
        records = bytearray(records)
    stamp(records, 0, first_offset, leader_epoch)
    stamped = BatchHeader._make((first_offset, header[1], leader_epoch, *header[3:]))
    return LeaderBatch(records, stamped)


def _too_large(size: int, config: LogConfig, partition: object) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size in the append to {partition} is {size} bytes which exceeds the maximum configured "
        f"value of {config.max_message_bytes}.",
    )


def _check_client_header(header: BatchHeader, partition: object) -> None:
    """LogValidator.validateBatch."""
    problem = None
    if header.base_offset != 0:
        problem = (
            f"The baseOffset of the record batch in the append to {partition} should be 0, but it is "
            f"{header.base_offset}"
        )
    elif header.last_offset_delta < 0:
        problem = f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}] in {partition}."
    elif header.records_count <= 0:
        problem = f"Invalid reported count for record batch: {header.records_count} in {partition}."
    elif header.records_count != header.last_offset_delta + 1:
        problem = (
            f"Inconsistent batch offset range [{header.base_offset}, {header.last_offset}] and count of records "
            f"{header.records_count} in {partition}."
        )
    elif header.attributes & CONTROL_MASK:
        problem = f"Clients are not allowed to write control records in {partition}."
    elif header.producer_id >= 0 and header.base_sequence < 0:
        problem = (
            f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id} in "
            f"{partition}."
        )
    elif header.attributes & CODEC_MASK > MAX_CODEC_ID:
        problem = f"Unknown compression type id: {header.attributes & CODEC_MASK} in {partition}."
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_RECORD, problem)


def _validate_walking(
    records: Buffer,
    first_offset: int,
    leader_epoch: int,
    config: LogConfig,
    now_ms: int,
    origin: AppendOrigin,
    partition: object,
) -> LeaderBatch:
    raise NotImplementedError


def analyze_follower(records: Buffer, log_end_offset: int, partition: object) -> FollowerBatches:
    """Check batches from a leader: whole, sound, in order, and not below the log's end.

    A cut-off last batch is left out, as a fetch may end in one.
    """
    headers: list[tuple[int, BatchHeader]] = []
    last_offset = UNKNOWN_OFFSET
    max_timestamp, offset_of_max_timestamp = NO_TIMESTAMP, UNKNOWN_OFFSET
    valid_bytes = 0
    for position, header in iter_batches(records):
        verify_crc(records, position, header)
        if header.last_offset <= last_offset:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Out of order offsets found in append to {partition}: {header.last_offset} after {last_offset}",
            )
        last_offset = header.last_offset
        if header.max_timestamp > max_timestamp:
            max_timestamp, offset_of_max_timestamp = header.max_timestamp, last_offset
        headers.append((position, header))
        valid_bytes = position + header.size
    if not headers:
        return FollowerBatches([], UNKNOWN_OFFSET, UNKNOWN_OFFSET, NO_TIMESTAMP, UNKNOWN_OFFSET, 0)
    first = headers[0][1]
    first_offset = first.base_offset if first.magic >= 2 else first.last_offset
    if first_offset < log_end_offset:
        raise UnexpectedAppendOffsetError(
            f"Unexpected offset in append to {partition}. First offset {first_offset} is less than the next offset "
            f"{log_end_offset}.",
            first.base_offset,
            last_offset,
        )
    return FollowerBatches(headers, first_offset, last_offset, max_timestamp, offset_of_max_timestamp, valid_bytes)


class UnexpectedAppendOffsetError(Exception):
    """A leader's batches begin below the follower's log end (UnexpectedAppendOffsetException)."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(message)
        self.first_offset = first_offset
        self.last_offset = last_offset
