"""Requests to consumer groups, their responses, settings, and what they must know of the world.

Names are Kafka's. In a heartbeat None, or a rebalance timeout of -1, means "as before".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kpybroker.core.assignors.values import Assignor, Partitions, TopicId
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.consumer_group.members import ClassicMetadata, Member
from kpybroker.core.modern_group.values import GroupCounts, HeartbeatResult, ModernGroupConfig
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode

CONSUMER_GROUP_TYPE: Final = "consumer"


class ConsumerGroupState(Enum):
    """The states of a consumer group; the values are the names in ConsumerGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MigrationPolicy(Enum):
    """`group.consumer.migration.policy`: which groups with members may change their protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    """Classic groups become consumer groups."""
    DOWNGRADE = "downgrade"
    """Consumer groups become classic ones."""
    DISABLED = "disabled"
    """Neither; and no member of the classic protocol may join a consumer group."""

    @property
    def allows_upgrade(self) -> bool:
        """Whether the first member of the new protocol makes a classic group a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a group becomes a classic one when its last member of the new protocol goes."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerGroupLimits:
    """The broker's `group.consumer.*` keys that hold for every group, with Kafka 4.3's defaults."""

    max_size: int = INT32_MAX
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000


def _default_config(group_id: str) -> ModernGroupConfig:
    return ModernGroupConfig()


def _no_pattern_is_valid(pattern: str) -> str | None:
    return "patterns are not supported"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What groups ask: settings, assignors by name in order of preference, and what is wrong with a pattern.

    `pattern_problem` returns None for a valid regular expression, else what is wrong with it.
    """

    limits: ConsumerGroupLimits = ConsumerGroupLimits()
    config_of: Callable[[str], ModernGroupConfig] = _default_config
    assignors: Mapping[str, Assignor] = field(default_factory=dict)
    pattern_problem: Callable[[str], str | None] = _no_pattern_is_valid
    counts: GroupCounts = field(default_factory=GroupCounts)


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat. `new_member_id` is for a member that has none (version 0), drawn by the caller.

    `owned` is what the member owns now. `rights` is returned in the effect that resolves patterns. `classic` is set
    where a JoinGroup is meant: its member uses the classic protocol.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: frozenset[str] | None = None
    pattern: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    new_member_id: str = ""
    classic: ClassicMetadata | None = None
    rights: object = None
    owner: Owner = UNOWNED

    @property
    def is_full(self) -> bool:
        """Whether the member said all there is to say, as it does after an error: it wants its whole assignment."""
        has_subscription = self.topic_names is not None or self.pattern is not None
        return self.rebalance_timeout_ms != -1 and has_subscription and self.owned is not None


class ConsumerHeartbeatResult(HeartbeatResult):
    """Replies to ConsumerHeartbeat."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroup:
    """Asks for epochs, members and assignments of one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribedConsumerMember:
    """A member with its target. Topics that do not exist any more are left out of both assignments."""

    member: Member
    assignment: Mapping[TopicId, tuple[int, ...]]
    target: Mapping[TopicId, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """Replies to DescribeConsumerGroup; `topic_names` has the name of each topic in an assignment."""

    error: ErrorCode
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)


# --- effects, whose results come back as events


@dataclass(frozen=True, slots=True)
class ResolvePatterns:
    """An effect: find the topics that each pattern matches and the caller of the heartbeat may describe.

    The result goes to `on_patterns_resolved`, after the writes of this outcome.
    """

    group_id: str
    patterns: frozenset[str]
    rights: object


@dataclass(frozen=True, slots=True)
class ResolvedPattern:
    """The topics that a pattern matches, in which version of the metadata, and when that was found."""

    topic_names: frozenset[str]
    version: int
    timestamp_ms: int
