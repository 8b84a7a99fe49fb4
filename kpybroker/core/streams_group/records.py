"""The records of streams groups in `__consumer_offsets` as values; `encoding` has their bytes.

A record without a value is a tombstone. Type 18 was one of Kafka 4.1's preview, and is not written any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.streams_group.members import CurrentTasks, StreamsMemberMetadata, Tasks
from kpybroker.core.streams_group.topics.topology import Topology

NO_TOPOLOGY_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class StreamsGroupEpoch:
    """A group's epoch, and what it was computed from. `assignment_configs` are pairs of key and value."""

    epoch: int
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    assignment_configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupEpochRecord:
    """Type 17: a group and its epoch."""

    group_id: str
    value: StreamsGroupEpoch | None


@dataclass(frozen=True, slots=True)
class StreamsMemberRecord:
    """Type 19: what a member said of itself."""

    group_id: str
    member_id: str
    value: StreamsMemberMetadata | None


@dataclass(frozen=True, slots=True)
class StreamsTargetEpochRecord:
    """Type 20: which epoch the target assignment is for."""

    group_id: str
    value: TargetEpoch | None


@dataclass(frozen=True, slots=True)
class StreamsTargetRecord:
    """Type 21: a member's part of the target assignment."""

    group_id: str
    member_id: str
    value: Tasks | None


@dataclass(frozen=True, slots=True)
class StreamsCurrentRecord:
    """Type 22: the epoch of a member, and its tasks in it."""

    group_id: str
    member_id: str
    value: CurrentTasks | None


@dataclass(frozen=True, slots=True)
class TopologyRecord:
    """Type 23: the topology of the application."""

    group_id: str
    value: Topology | None


StreamsRecord = (
    StreamsGroupEpochRecord
    | StreamsMemberRecord
    | StreamsTargetEpochRecord
    | StreamsTargetRecord
    | StreamsCurrentRecord
    | TopologyRecord
)
STREAMS_RECORDS: Final = (
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    StreamsCurrentRecord,
    TopologyRecord,
)
STREAMS_RECORD_TYPES: Final = frozenset((17, 19, 20, 21, 22, 23))
"""The types of their keys."""
