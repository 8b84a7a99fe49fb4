"""The name of a partition, as values that every room above `wire` shares."""

from __future__ import annotations

from typing import NamedTuple

PartitionKey = tuple[str, int]
"""Any (topic, partition) pair. A `TopicPartition` is one; group and transaction code builds plain tuples."""


class TopicPartition(NamedTuple):
    """Kafka's TopicPartition, printed as `topic-0`. It equals the plain pair, and has the same hash."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
