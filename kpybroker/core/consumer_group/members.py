"""A member of a consumer group: what it said of itself, and what it is assigned. Each has a record of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from kpybroker.core.assignors.values import Partitions, TopicId
from kpybroker.core.modern_group.members import (
    LEAVE_GROUP_EPOCH,
    TOPIC_NAME_BYTES,
    ModernMember,
    names_bytes,
    partitions_bytes,
    texts_bytes,
)

PartitionEpochs = Mapping[TopicId, Mapping[int, int]]
"""For each partition the epoch in which the member got it (KIP-1251), by topic."""


class MemberState(IntEnum):
    """How far a member has come towards the target assignment; the numbers are in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must give up partitions before it may enter the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in the latest epoch, and waits for partitions that others still own."""
    UNKNOWN = 127
    """A state of a later Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """Of a member that uses the classic protocol: its session, and its protocols with their metadata."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """What a member said of itself. A pattern is a regular expression for names of topics; None or "" is none."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    pattern: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None

    @property
    def session_timeout_ms(self) -> int | None:
        """Of a member that uses the classic protocol, which said it; None where the group's configuration says it."""
        return None if self.classic is None else self.classic.session_timeout_ms


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """The epoch of a member, and its partitions in it: those it may use, and those it must give up."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all of the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, topic_id: TopicId, partition: int) -> int | None:
        """The epoch in which the member got a partition that it owns or must give up; None for any other."""
        for epochs in (self.assigned, self.pending_revocation):
            if (found := epochs.get(topic_id, {}).get(partition)) is not None:
                return found
        return None


NEW_METADATA: Final = MemberMetadata()
NEW_ASSIGNMENT: Final = CurrentAssignment()
GONE: Final = CurrentAssignment(LEAVE_GROUP_EPOCH, LEAVE_GROUP_EPOCH)
"""In place of an assignment that has a tombstone."""


@dataclass(frozen=True, slots=True)
class Member(ModernMember[MemberMetadata, CurrentAssignment]):
    """A member: its id, and its two parts."""

    metadata: MemberMetadata = NEW_METADATA
    current: CurrentAssignment = NEW_ASSIGNMENT


def without_epochs(epochs: PartitionEpochs) -> Partitions:
    """The partitions alone."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in epochs.items()}


def held(current: CurrentAssignment) -> Partitions:
    """The partitions that no one else may have: those that the member may use, and those that it must give up."""
    parts = (current.assigned, current.pending_revocation)
    return {
        topic_id: frozenset().union(*(part.get(topic_id, ()) for part in parts)) for part in parts for topic_id in part
    }


def is_subset(owned: Partitions | None, assigned: PartitionEpochs) -> bool:
    """Whether a member owns nothing that it is not assigned; False where it did not say what it owns."""
    if owned is None:
        return False
    return all(
        topic_id in assigned and partitions <= assigned[topic_id].keys() for topic_id, partitions in owned.items()
    )


# --- bytes in memory: estimates, measured with CPython 3.11 and rounded up

CONSUMER_GROUP_BYTES: Final = 2_500
CONSUMER_MEMBER_BYTES: Final = 1_500
"""A member without names and partitions: its objects, entries of tables, its timers."""


def member_bytes(member: Member, target: Partitions) -> int:
    """What a member takes, its assignments included."""
    return metadata_bytes(member.member_id, member.metadata) + _assignment_bytes(member.current, target)


def metadata_bytes(member_id: str, metadata: MemberMetadata) -> int:
    """What a member takes that is assigned nothing."""
    texts = texts_bytes(
        member_id,
        metadata.instance_id,
        metadata.rack_id,
        metadata.client_id,
        metadata.client_host,
        metadata.pattern,
        metadata.server_assignor,
    )
    protocols = () if metadata.classic is None else metadata.classic.protocols
    return (
        CONSUMER_MEMBER_BYTES
        + texts
        + names_bytes(metadata.topic_names)
        + sum(TOPIC_NAME_BYTES + len(name) + len(data) for name, data in protocols)
    )


def _assignment_bytes(current: CurrentAssignment, target: Partitions) -> int:
    held = (current.assigned, current.pending_revocation)
    return sum(partitions_bytes(part.values()) for part in held) + partitions_bytes(target.values())
