"""Idempotent producers' batches that one connection was refused for now: docs/decisions/duplicates.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kpybroker.core.topic_names import MAX_NAME_LENGTH
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import parse_header

if TYPE_CHECKING:
    from kpybroker.broker.replication.partition import Partition

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
PARTITIONS_MAX = 256
"""What a connection remembers: some 200 KB with the longest names that a topic may have."""
Records = bytes | memoryview | None
_HALF = 1 << 30  # of all sequence numbers, which wrap


class _Refused(NamedTuple):
    producer_id: int
    producer_epoch: int
    base_sequence: int
    code: ErrorCode
    behind: int


class RefusedBatches:
    """By partition, the first batch that was refused and has not come again. What leaves a gap behind it is refused as
    it was."""

    __slots__ = ("by_partition",)

    def __init__(self) -> None:
        self.by_partition: dict[tuple[str, int], _Refused] = {}

    def note(self, topic: str, index: int, records: Records, error: KafkaError | LogDirError) -> None:
        """`records` were refused with `error`."""
        key = (topic, index)
        code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        producer = _producer(records)
        if code not in FOR_NOW or producer is None or len(topic) > MAX_NAME_LENGTH:
            return
        first = self.by_partition.get(key)
        if first is not None and first[:2] == producer[:2] and _follows(first.base_sequence, producer[2]) > 0:
            return
        if first is None and len(self.by_partition) >= PARTITIONS_MAX:
            del self.by_partition[next(iter(self.by_partition))]
        self.by_partition[key] = _Refused(*producer, code, 0)

    def check(self, partition: Partition, records: Records) -> None:
        """Raises the KafkaError of the batch before, if `records` were sent behind it and it is not in the log.

        Says nothing where this broker does not lead, or the producer is fenced: appending tells.
        """
        log, key = partition.log, (partition.topic, partition.index)
        if log is None or partition.leader is None:
            return
        refused = self.by_partition.pop(key, None)
        if refused is None or refused.behind == BEHIND_MAX:
            return
        producer = _producer(records)
        if producer is None or producer[:2] != refused[:2]:
            return
        producer_id, producer_epoch, sequence = producer
        known = log.producers.producers.get(producer_id)
        if known is not None:
            if known.producer_epoch > producer_epoch:
                return
            if known.producer_epoch == producer_epoch and _follows(known.last_sequence, sequence) < 2:
                return  # another leader took it meanwhile
        if _follows(refused.base_sequence, sequence) > 0:
            self.by_partition[key] = refused._replace(behind=refused.behind + 1)
            raise KafkaError(refused.code)


def _follows(sequence: int, later: int) -> int:
    """By how much, among numbers that wrap: below 0 if it is not later."""
    return (later - sequence + _HALF) % (2 * _HALF) - _HALF


def _producer(records: Records) -> tuple[int, int, int] | None:
    """Its id, epoch and sequence, if the records are an idempotent producer's."""
    if records is None:
        return None
    try:
        header = parse_header(records)
    except KafkaError:
        return None
    return None if header.producer_id < 0 else (header.producer_id, header.producer_epoch, header.base_sequence)
