"""The records of share groups in `__consumer_offsets` as values; `encoding` has their bytes.

A record without a value is a tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.core.share_group.members import ShareAssignment, ShareMemberMetadata


@dataclass(frozen=True, slots=True)
class NamedPartitions:
    """Partitions of a topic, and its name."""

    name: str
    partitions: frozenset[int]


TopicStates = Mapping[TopicId, NamedPartitions]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The partitions for which the share coordinator makes a state of the group, those that have one, and the topics
    whose states are being deleted, with their names.
    """

    initializing: TopicStates = field(default_factory=dict)
    initialized: TopicStates = field(default_factory=dict)
    deleting: Mapping[TopicId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareMemberRecord:
    """Type 10: what a member said of itself."""

    group_id: str
    member_id: str
    value: ShareMemberMetadata | None


@dataclass(frozen=True, slots=True)
class ShareGroupEpochRecord:
    """Type 11: a group and its epoch. The tombstone ends the group."""

    group_id: str
    value: GroupEpoch | None


@dataclass(frozen=True, slots=True)
class ShareTargetEpochRecord:
    """Type 12: which epoch the target assignment is for."""

    group_id: str
    value: TargetEpoch | None


@dataclass(frozen=True, slots=True)
class ShareTargetRecord:
    """Type 13: a member's part of the target assignment."""

    group_id: str
    member_id: str
    value: Partitions | None


@dataclass(frozen=True, slots=True)
class ShareCurrentRecord:
    """Type 14: the epoch of a member, and its partitions in it."""

    group_id: str
    member_id: str
    value: ShareAssignment | None


@dataclass(frozen=True, slots=True)
class StatePartitionsRecord:
    """Type 15: the partitions that have a state of the group."""

    group_id: str
    value: StatePartitions | None


ShareRecord = (
    ShareMemberRecord
    | ShareGroupEpochRecord
    | ShareTargetEpochRecord
    | ShareTargetRecord
    | ShareCurrentRecord
    | StatePartitionsRecord
)

SHARE_RECORDS: Final = (
    ShareMemberRecord,
    ShareGroupEpochRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    ShareCurrentRecord,
    StatePartitionsRecord,
)
SHARE_RECORD_TYPES: Final = frozenset(range(10, 16))
"""The types of their keys."""
