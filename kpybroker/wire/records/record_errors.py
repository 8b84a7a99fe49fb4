"""Collects the errors of single records in a batch that a producer sent, and reports them as Kafka does (KIP-467)."""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.wire.constants import NO_TIMESTAMP
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.append_rules import AppendRules
from kpybroker.wire.records.batch import BatchHeader, TimestampType
from kpybroker.wire.records.default_record import INT64_MAX

_RECORD_ERRORS_SHOWN = 3


class RecordError(NamedTuple):
    """Why a record is rejected; `batch_index` counts records within their batch."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        """As ProduceResponse.RecordError.toString: clients see it."""
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class RecordValidationError(KafkaError):
    """INVALID_RECORD or INVALID_TIMESTAMP with the records that caused it (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


class RequestRecordsError(KafkaError):
    """Records that this version of Produce must not contain: rejected before the log is read."""


def timestamp_problem(
    timestamp: int, offset: int, stamped_by_broker: bool, rules: AppendRules, now_ms: int
) -> str | None:
    """What is wrong with a record's timestamp, in Kafka's words, or None (LogValidator.validateTimestamp)."""
    if rules.timestamp_type is TimestampType.CREATE_TIME and timestamp != NO_TIMESTAMP:
        age = now_ms - timestamp
        if age > rules.timestamp_before_max_ms or -age > rules.timestamp_after_max_ms:
            earliest, latest = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
            return (
                f"Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp should be "
                f"within [{earliest}, {latest if latest <= INT64_MAX else latest - 2**64}]"  # as Java adds
            )
    elif stamped_by_broker:
        return (
            f"Invalid timestamp type in message with offset {offset}. Producer should not set timestamp type to "
            "LogAppendTime."
        )
    return None


class RecordErrors:
    """Collects what is wrong with the records of one batch."""

    def __init__(self, batch: BatchHeader, rules: AppendRules, now_ms: int, partition: object) -> None:
        self._stamped_by_broker = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._rules = rules
        self._now_ms = now_ms
        self._partition = partition
        self._errors: list[RecordError] = []
        self._code = ErrorCode.INVALID_RECORD

    def check(self, index: int, offset: int, timestamp: int, has_key: bool) -> None:
        """Checks one record, key first, then timestamp (LogValidator.validateRecord)."""
        if self._rules.compacted and not has_key:
            missing = f"Compacted topic cannot accept message without key in topic partition {self._partition}"
            self._errors.append(RecordError(index, missing))
            return
        problem = timestamp_problem(timestamp, offset, self._stamped_by_broker, self._rules, self._now_ms)
        if problem is not None:
            self._code = ErrorCode.INVALID_TIMESTAMP
            self._errors.append(RecordError(index, problem))

    def add(self, index: int, problem: str) -> None:
        """Notes that the record at `index` is invalid; the partition is added to `problem`."""
        self._errors.append(RecordError(index, f"{problem} in topic partition {self._partition}."))

    def finish(self) -> None:
        """Raises RecordValidationError if any record was wrong (LogValidator.processRecordErrors)."""
        if not self._errors:
            return
        if self._code is ErrorCode.INVALID_TIMESTAMP:
            message = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = ", ".join(map(str, self._errors[:_RECORD_ERRORS_SHOWN]))
            message = (
                f"One or more records have been rejected due to {len(self._errors)} record errors in total, and only "
                f"showing the first three errors at most: [{shown}]"
            )
        raise RecordValidationError(self._code, message, self._errors)
