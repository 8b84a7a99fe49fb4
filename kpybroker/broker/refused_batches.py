"""Idempotent producers' batches that one connection was refused for now: docs/decisions/duplicates.md."""

from __future__ import annotations

import struct
from typing import NamedTuple

from kpybroker.storage.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import MAGIC_OFFSET, RECORD_BATCH_OVERHEAD

FOR_NOW = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
BEHIND_MAX = 4
"""An idempotent producer has five requests on their way at most (`max.in.flight.requests.per.connection`)."""
PARTITIONS_MAX = 1000
Records = bytes | memoryview | None
_MAGIC = 2
_PRODUCER = struct.Struct(">43xqhi")
_HALF = 1 << 30  # of all sequence numbers, which wrap


class _Refused(NamedTuple):
    producer_id: int
    producer_epoch: int
    base_sequence: int
    code: ErrorCode
    behind: int


class RefusedBatches:
    """By partition, the first batch that was refused and has not come again. Those behind it are refused as it was."""

    __slots__ = ("by_partition",)

    def __init__(self) -> None:
        self.by_partition: dict[tuple[str, int], _Refused] = {}

    def note(self, topic: str, index: int, records: Records, error: KafkaError | LogDirError) -> None:
        """`records` were refused with `error`."""
        key = (topic, index)
        code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        producer = _producer(records)
        if code not in FOR_NOW or producer is None or key in self.by_partition:
            return
        if len(self.by_partition) >= PARTITIONS_MAX:
            del self.by_partition[next(iter(self.by_partition))]
        self.by_partition[key] = _Refused(*producer, code, 0)

    def check(self, topic: str, index: int, records: Records) -> None:
        """Raises the KafkaError of the batch before, if `records` were sent behind it."""
        key = (topic, index)
        refused = self.by_partition.pop(key, None)
        if refused is None or refused.behind == BEHIND_MAX:
            return
        producer = _producer(records)
        if producer is None or producer[:2] != refused[:2]:
            return
        if 0 < (producer[2] - refused.base_sequence) % (2 * _HALF) < _HALF:
            self.by_partition[key] = refused._replace(behind=refused.behind + 1)
            raise KafkaError(refused.code)


def _producer(records: Records) -> tuple[int, int, int] | None:
    """Its id, epoch and sequence, if the records are an idempotent producer's."""
    if records is None or len(records) < RECORD_BATCH_OVERHEAD or records[MAGIC_OFFSET] != _MAGIC:
        return None
    producer_id, producer_epoch, base_sequence = _PRODUCER.unpack_from(records)
    return None if producer_id < 0 else (producer_id, producer_epoch, base_sequence)
