"""What the metrics count of each topic: plain integers, which partitions of the topic share.

The produce path adds to three of them. What happens rarely is counted in an object of its own, so that an idle
topic costs little. Kafka's ``BrokerTopicStats``; `broker.metrics` reads it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kpybroker.wire.errors import ErrorCode

_TOO_LARGE: Final = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))
_FORESEEN: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    )
)
"""Errors of Produce that are no failures of it, as in ReplicaManager.appendToLocalLog."""
_FORESEEN_OF_FETCH: Final = frozenset(
    (
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR),
        *(ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_OUT_OF_RANGE),
        *(ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )
)


class RareTraffic:
    """Counts of what most topics never have."""

    __slots__ = (
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_conversions",
        "invalid_crc",
        "produce_conversions",
    )

    def __init__(self) -> None:
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.bytes_rejected = 0
        self.invalid_crc = 0
        self.produce_conversions = 0
        self.fetch_conversions = 0


class ShareTraffic:
    """Requests of share groups that name the topic, and those of them that failed in one of its partitions."""

    __slots__ = ("acknowledgements", "failed_acknowledgements", "failed_fetches", "fetches")

    def __init__(self) -> None:
        self.fetches = 0
        self.failed_fetches = 0
        self.acknowledgements = 0
        self.failed_acknowledgements = 0

    def add(self, other: ShareTraffic) -> None:
        """Count what the other has counted as well."""
        for name in ShareTraffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


FREQUENT: Final = ("bytes_in", "bytes_out", "fetch_requests", "messages_in", "produce_requests")


class TopicTraffic:
    """Counts since this broker hosts the topic. `partitions` are those here."""

    __slots__ = (*FREQUENT, "partitions", "rare", "shares")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.messages_in = 0
        self.produce_requests = 0
        self.bytes_out = 0
        self.fetch_requests = 0
        self.partitions = 0
        self.rare: RareTraffic | None = None
        self.shares: ShareTraffic | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing was counted."""
        return not self.produce_requests and not self.fetch_requests and self.rare is None

    def rare_counts(self) -> RareTraffic:
        """The counts of what is rare, from now on kept."""
        if self.rare is None:
            self.rare = RareTraffic()
        return self.rare

    def share_counts(self) -> ShareTraffic:
        """The counts of share groups, from now on kept."""
        if self.shares is None:
            self.shares = ShareTraffic()
        return self.shares

    def refused(self, code: ErrorCode, size: int) -> None:
        """Batches of this size were not appended."""
        if code in _TOO_LARGE:
            self.rare_counts().bytes_rejected += size
        elif code is ErrorCode.CORRUPT_MESSAGE:
            self.rare_counts().invalid_crc += 1
        elif code not in _FORESEEN:
            self.rare_counts().failed_produce_requests += 1

    def fetch_failed(self, code: ErrorCode) -> None:
        """A partition was not read."""
        if code not in _FORESEEN_OF_FETCH:
            self.rare_counts().failed_fetch_requests += 1

    def add(self, other: TopicTraffic) -> None:
        """Count what the other has counted as well."""
        for name in FREQUENT:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.rare is not None:
            rare = self.rare_counts()
            for name in RareTraffic.__slots__:
                setattr(rare, name, getattr(rare, name) + getattr(other.rare, name))
        if other.shares is not None:
            self.share_counts().add(other.shares)


class Traffic:
    """By topic, and of the broker what has no topic. `removed` is what topics counted that are not here any more."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self.removed = TopicTraffic()
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def isr_changed(self, before: Collection[int], after: Collection[int]) -> None:
        """The controller agreed to a change."""
        if len(after) < len(before):
            self.isr_shrinks += 1
        elif len(after) > len(before):
            self.isr_expands += 1

    def host(self, topic: str) -> TopicTraffic:
        """The counts for one more partition of a topic."""
        traffic = self.topics.get(topic)
        if traffic is None:
            traffic = self.topics[topic] = TopicTraffic()
        traffic.partitions += 1
        return traffic

    def drop(self, topic: str) -> None:
        """A partition of the topic is not here any more. After the last one its counts are kept in the sum only."""
        traffic = self.topics[topic]
        traffic.partitions -= 1
        if not traffic.partitions:
            self.removed.add(self.topics.pop(topic))
