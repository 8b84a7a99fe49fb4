"""The records of consumer groups in `__consumer_offsets` as values; `encoding` has their bytes.

A record without a value is a tombstone. Of the partition metadata that Kafka 4.0 wrote (type 4), only the tombstone
counts: the hash in the group's epoch took its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.members import CurrentAssignment, MemberMetadata
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch


@dataclass(frozen=True, slots=True)
class GroupEpochRecord:
    """Type 3: a group and its epoch. The tombstone ends the group."""

    group_id: str
    value: GroupEpoch | None


@dataclass(frozen=True, slots=True)
class PartitionMetadataRecord:
    """Type 4, of Kafka 4.0: written as a tombstone only. `value` is True for one that has to be removed."""

    group_id: str
    value: bool | None


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """Type 5: what a member said of itself."""

    group_id: str
    member_id: str
    value: MemberMetadata | None


@dataclass(frozen=True, slots=True)
class TargetEpochRecord:
    """Type 6: which epoch the target assignment is for."""

    group_id: str
    value: TargetEpoch | None


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """Type 7: a member's part of the target assignment."""

    group_id: str
    member_id: str
    value: Partitions | None


@dataclass(frozen=True, slots=True)
class CurrentRecord:
    """Type 8: the epoch of a member, and its partitions in it."""

    group_id: str
    member_id: str
    value: CurrentAssignment | None


@dataclass(frozen=True, slots=True)
class PatternRecord:
    """Type 16: the topics that a regular expression of the group matches."""

    group_id: str
    pattern: str
    value: ResolvedPattern | None


ConsumerRecord = (
    GroupEpochRecord
    | PartitionMetadataRecord
    | MemberRecord
    | TargetEpochRecord
    | TargetRecord
    | CurrentRecord
    | PatternRecord
)

CONSUMER_RECORD_TYPES: Final = frozenset((3, 4, 5, 6, 7, 8, 16))
"""The types of their keys."""
