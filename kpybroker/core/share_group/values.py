"""Requests to share groups, their responses, settings, and what they ask of the share coordinator.

Names are Kafka's. In a heartbeat None means "as before".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.values import HeartbeatResult, ModernGroupConfig
from kpybroker.core.share_group.members import ShareMember
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.errors import ErrorCode

SHARE_GROUP_TYPE: Final = "share"
"""The type of such a group, and its protocol type."""


class ShareGroupState(Enum):
    """The states of a share group; the values are the names in ShareGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ShareGroupLimits:
    """The broker's `group.share.*` keys that hold for every group, with Kafka 4.3's defaults."""

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000


def _default_config(group_id: str) -> ModernGroupConfig:
    return ModernGroupConfig()


@dataclass(frozen=True, slots=True)
class ShareSurroundings:
    """The settings of all share groups of a machine."""

    limits: ShareGroupLimits = ShareGroupLimits()
    config_of: Callable[[str], ModernGroupConfig] = _default_config


# --- requests and their responses


@dataclass(frozen=True, slots=True)
class ShareHeartbeat:
    """ShareGroupHeartbeat."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""
    owner: Owner = UNOWNED


class ShareHeartbeatResult(HeartbeatResult):
    """Replies to ShareHeartbeat."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DescribeShareGroup:
    """Asks for epochs, members and assignments of one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribedShareGroup:
    """Replies to DescribeShareGroup. `topic_names` has the topics in assignments that exist."""

    error: ErrorCode
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[ShareMember, ...] = ()
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListInitializedPartitions:
    """Asks which partitions have a state of the group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class InitializedPartitions:
    """Replies to ListInitializedPartitions; a group that there is not has none."""

    error: ErrorCode
    partitions: Partitions = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlterShareOffsets:
    """Begin the states of these partitions again, at these offsets: while the group is empty, or not there."""

    group_id: str
    offsets: Mapping[PartitionKey, int]
    owner: Owner = UNOWNED


@dataclass(frozen=True, slots=True)
class AlteredShareOffsets:
    """Replies to AlterShareOffsets, with the error of each partition that has one."""

    error: ErrorCode
    message: str | None = None
    errors: Mapping[PartitionKey, ErrorCode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteShareOffsets:
    """Forget the states of all partitions of these topics: while the group is empty."""

    group_id: str
    topic_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletedTopicOffsets:
    """How that ended for one topic; the id is zeros where none is known."""

    topic_name: str
    topic_id: TopicId
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedShareOffsets:
    """Replies to DeleteShareOffsets: the topics that are done first."""

    error: ErrorCode
    message: str | None = None
    topics: tuple[DeletedTopicOffsets, ...] = ()


# --- effects, whose results come back as events

StateErrors = Mapping[tuple[TopicId, int], ErrorCode]
"""The error of each partition that has one."""
StatesDone = Callable[[Step[Any], StateErrors], None]


@dataclass(frozen=True, slots=True, eq=False)
class InitializeStates:
    """An effect: the share coordinator begins the states of these partitions, at these offsets; -1: decided later.

    The result goes to `on_states_done`.
    """

    group_id: str
    state_epoch: int
    start_offsets: Mapping[TopicId, Mapping[int, int]]
    done: StatesDone


@dataclass(frozen=True, slots=True, eq=False)
class DeleteStates:
    """An effect: the share coordinator forgets the states of these partitions; the result goes to `on_states_done`."""

    group_id: str
    partitions: Partitions
    done: StatesDone
