"""Requests to streams groups and their settings. Names are Kafka's. In a heartbeat None means "as before"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.modern_group.values import ModernGroupConfig
from kpybroker.core.streams_group.members import Endpoint, StreamsMember, TaskIds, Tasks
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology, Status
from kpybroker.core.streams_group.topics.topology import TopicInfo, Topology
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode

STREAMS_GROUP_TYPE: Final = "streams"
"""The type of such a group, and its protocol type."""


class StreamsGroupState(Enum):
    """The states of a streams group; the values are the names in StreamsGroupDescribe and ListGroups."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """The topology is not validated: topics are missing, or wrong."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class StreamsGroupConfig(ModernGroupConfig):
    """The configuration of one group (resource type GROUP), with Kafka 4.3's defaults."""

    initial_rebalance_delay_ms: int = 3_000
    standby_replicas: int = 0

    @property
    def assignment_configs(self) -> tuple[tuple[str, str], ...]:
        """What the assignor receives, as the group's record has it: a change takes the group to its next epoch."""
        return (("num.standby.replicas", str(self.standby_replicas)),)


def _default_config(group_id: str) -> StreamsGroupConfig:
    return StreamsGroupConfig()


@dataclass(frozen=True, slots=True)
class StreamsSurroundings:
    """The settings of all streams groups of a machine. `max_size` is `group.streams.max.size`."""

    max_size: int = INT32_MAX
    config_of: Callable[[str], StreamsGroupConfig] = _default_config


@dataclass(frozen=True, slots=True)
class StreamsHeartbeat:
    """StreamsGroupHeartbeat. `owned` is what the member runs now; a kind of tasks that it does not name is None."""

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: TaskIds | None = None
    standby_tasks: TaskIds | None = None
    warmup_tasks: TaskIds | None = None
    process_id: str | None = None
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    has_task_offsets: bool = False
    has_task_end_offsets: bool = False
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""
    owner: Owner = UNOWNED

    @property
    def owned(self) -> Tasks | None:
        """What the member runs now; None where it did not say."""
        if self.active_tasks is None or self.standby_tasks is None or self.warmup_tasks is None:
            return None
        return Tasks(self.active_tasks, self.standby_tasks, self.warmup_tasks)


@dataclass(frozen=True, slots=True)
class EndpointPartitions:
    """The partitions that a member with an endpoint has state of, by topic."""

    endpoint: Endpoint
    active: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    standby: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamsHeartbeatResult:
    """Replies to StreamsHeartbeat; `tasks` None means "as before". `to_create`: internal topics that are missing."""

    error: ErrorCode
    message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] | None = None
    tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    to_create: Mapping[str, TopicInfo] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribeStreamsGroup:
    """Asks for epochs, topology, members and tasks of one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DescribedStreamsGroup:
    """Replies to DescribeStreamsGroup. `topology` is the configured one if there is one that is ready."""

    error: ErrorCode
    message: str | None = None
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | ConfiguredTopology | None = None
    members: tuple[StreamsMember, ...] = ()
    targets: Mapping[str, Tasks] = field(default_factory=dict)
