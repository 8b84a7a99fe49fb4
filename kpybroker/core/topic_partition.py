"""A partition by its topic's name and its number: Kafka's `TopicPartition`."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Its text is the name of the partition's log directory."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
