"""Batches of idempotent producers that one connection was refused for now: docs/decisions/duplicates.md.

A broker that refuses a batch for now (it does not lead yet) must refuse the batches sent behind it as well, or the
producer's sequence numbers would have a gap in the log.
"""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.core.log.producer_state import ProducerState
from kpybroker.core.topic_names import MAX_NAME_LENGTH
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import parse_header

FOR_NOW = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
BEHIND_MAX = 4
"""An idempotent producer has at most five requests in flight (`max.in.flight.requests.per.connection`)."""
PARTITIONS_MAX = 256
"""Partitions that a connection remembers: about 200 KB with the longest names that a topic may have."""
Records = bytes | memoryview | None
Place = tuple[str | bytes, int]
"""Topic and partition; the topic's id where its name was not known."""
_HALF = 1 << 30  # of all sequence numbers, which wrap


class _Refused(NamedTuple):
    producer_id: int
    producer_epoch: int
    base_sequence: int
    code: ErrorCode
    behind: int


class RefusedBatches:
    """By partition, the first refused batch that the producer has not sent again. A batch behind it that would leave a
    gap is refused with the same error.
    """

    __slots__ = ("by_partition",)

    def __init__(self) -> None:
        self.by_partition: dict[Place, _Refused] = {}

    def note(self, key: tuple[str, int], topic_id: bytes, records: Records, error: KafkaError | LogDirError) -> None:
        """Remember that `records` were refused with `error`; errors that are not `FOR_NOW` change nothing.

        `key` is topic and partition; of an unknown `topic_id` the name is empty.
        """
        topic, index = key
        code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
        producer = _producer(records)
        if code not in FOR_NOW or producer is None or len(topic) > MAX_NAME_LENGTH:
            return
        place: Place = key if topic else (topic_id, index)
        first = self.by_partition.get(place)
        if first is not None and first[:2] == producer[:2] and _follows(first.base_sequence, producer[2]) > 0:
            return
        if first is None and len(self.by_partition) >= PARTITIONS_MAX:
            del self.by_partition[next(iter(self.by_partition))]
        self.by_partition[place] = _Refused(*producer, code, 0)

    def check(self, key: tuple[str, int], topic_id: bytes, producers: ProducerState | None, records: Records) -> None:
        """Raises the KafkaError of the refused batch, if `records` were sent behind it and it is not in the log.

        `key` is topic and partition, whose name may have been unknown then; `producers` are those of its log, or None
        where this broker does not lead. Raises nothing then, nor where the producer is fenced: the append refuses
        those.
        """
        if producers is None:
            return
        self._check(key, producers, records)
        self._check((topic_id, key[1]), producers, records)

    def _check(self, key: Place, producers: ProducerState, records: Records) -> None:
        refused = self.by_partition.pop(key, None)
        if refused is None or refused.behind == BEHIND_MAX:
            return
        producer = _producer(records)
        if producer is None or producer[:2] != refused[:2]:
            return
        producer_id, producer_epoch, sequence = producer
        known = producers.producers.get(producer_id)
        if known is not None:
            if known.producer_epoch > producer_epoch:
                return
            if known.producer_epoch == producer_epoch and _follows(known.last_sequence, sequence) < 2:
                return  # another leader has appended it
        if _follows(refused.base_sequence, sequence) > 0:
            self.by_partition[key] = refused._replace(behind=refused.behind + 1)
            raise KafkaError(refused.code)


def _follows(sequence: int, later: int) -> int:
    """How far `later` is behind `sequence`, among numbers that wrap; negative if it is not later."""
    return (later - sequence + _HALF) % (2 * _HALF) - _HALF


def _producer(records: Records) -> tuple[int, int, int] | None:
    """Id, epoch and base sequence of the idempotent producer that sent the records, if one did."""
    if records is None:
        return None
    try:
        header = parse_header(records)
    except KafkaError:
        return None
    return None if header.producer_id < 0 else (header.producer_id, header.producer_epoch, header.base_sequence)
