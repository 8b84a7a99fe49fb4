"""A member of a share group: what it said of itself, and what it is assigned. Each has a record of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.modern_group.members import (
    LEAVE_GROUP_EPOCH,
    ModernMember,
    names_bytes,
    partitions_bytes,
    texts_bytes,
)


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """What a member said of itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShareAssignment:
    """The epoch of a member, and its partitions in it."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    assigned: Partitions = field(default_factory=dict)


NEW_METADATA: Final = ShareMemberMetadata()
NEW_ASSIGNMENT: Final = ShareAssignment()
GONE: Final = ShareAssignment(LEAVE_GROUP_EPOCH, LEAVE_GROUP_EPOCH)
"""In place of an assignment that has a tombstone."""


@dataclass(frozen=True, slots=True)
class ShareMember(ModernMember[ShareMemberMetadata, ShareAssignment]):
    """A member: its id, and its two parts."""

    metadata: ShareMemberMetadata = NEW_METADATA
    current: ShareAssignment = NEW_ASSIGNMENT


# --- bytes in memory: estimates, measured with CPython 3.11 and rounded up

SHARE_GROUP_BYTES: Final = 2_500
SHARE_MEMBER_BYTES: Final = 1_200
"""A member without names and partitions: its objects, entries of tables, its timer."""


def member_bytes(member: ShareMember, target: Partitions) -> int:
    """What a member takes, its assignments included."""
    return metadata_bytes(member.member_id, member.metadata) + sum(
        partitions_bytes(part.values()) for part in (member.current.assigned, target)
    )


def metadata_bytes(member_id: str, metadata: ShareMemberMetadata) -> int:
    """What a member takes that is assigned nothing."""
    texts = texts_bytes(member_id, metadata.rack_id, metadata.client_id, metadata.client_host)
    return SHARE_MEMBER_BYTES + texts + names_bytes(metadata.topic_names)
