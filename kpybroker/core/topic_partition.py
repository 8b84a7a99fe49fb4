"""Values that every room above `wire` has: the name of a partition, and `shared`, one object for equal values.

Ten thousand partitions have their replicas in common, and the state in their nodes. What is shared is a tuple, a frozen
set, bytes or a string, which nothing changes. The latest `KEPT_MAX` are known; a value that is not known any more is
only kept twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

T = TypeVar("T")
V = TypeVar("V", bound=Hashable)

KEPT_MAX = 2048

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


def shared(value: V) -> V:
    """The first of the values that are equal to this one and of its type."""
    return _first(value)  # type: ignore[return-value]  # what is equal is of one type


@lru_cache(maxsize=KEPT_MAX, typed=True)
def _first(value: Hashable) -> Hashable:
    return value
