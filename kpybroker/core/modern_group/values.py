"""What groups of every kind must know of the world, the settings that each has, and what they count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.wire.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ModernGroupConfig:
    """The configuration of one group (resource type GROUP) of any kind, with Kafka 4.3's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as groups see it. `racks` has those of each partition's replicas, sorted; () where none are known."""

    topic_id: TopicId
    name: str
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics(Protocol):
    """The topics of the cluster, in one version of its metadata."""

    @property
    def version(self) -> int:
        """Never falls."""

    def by_name(self, name: str) -> TopicMetadata | None:
        """The topic of that name."""

    def by_id(self, topic_id: TopicId) -> TopicMetadata | None:
        """The topic with that id."""


class NoTopics:
    """Before the first metadata."""

    version = 0

    def by_name(self, name: str) -> TopicMetadata | None:
        """None."""
        return None

    def by_id(self, topic_id: TopicId) -> TopicMetadata | None:
        """None."""
        return None


@dataclass(slots=True)
class GroupCounts:
    """What all groups of a broker did since its start, also in partitions that it does not lead any more.

    As Kafka counts them: `offset_deletions` are those of OffsetDelete, and `offset_commits` also those of transactions,
    each as it is written. `consumer_rebalances`: how often a heartbeat, or topics of a pattern, took a consumer group
    to its next epoch; `share_rebalances`: a share group. `completed_rebalances`: how often a classic one became Stable.
    """

    offset_commits: int = 0
    offset_expirations: int = 0
    offset_deletions: int = 0
    completed_rebalances: int = 0
    consumer_rebalances: int = 0
    share_rebalances: int = 0
    streams_rebalances: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """Replies to a heartbeat; `assignment` None means "as before"."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
