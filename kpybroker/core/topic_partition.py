"""The name of a partition, as values that every room above `wire` shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

PartitionKey = tuple[str, int]
"""Any (topic, partition) pair. A `TopicPartition` is one; group and transaction code builds plain tuples."""


class TopicPartition(NamedTuple):
    """Kafka's TopicPartition, printed as `topic-0`. It equals the plain pair, and has the same hash."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(values: Iterable[tuple[PartitionKey, T]]) -> dict[str, list[tuple[int, T]]]:
    """Topics in the order of their first partition."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, index), value in values:
        topics.setdefault(topic, []).append((index, value))
    return topics


def indexes_by_topic(partitions: Iterable[PartitionKey]) -> dict[str, list[int]]:
    """The indexes of each topic, in the order of `partitions`."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
