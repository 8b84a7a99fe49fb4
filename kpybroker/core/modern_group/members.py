"""A member of a group of any kind: what it said of itself, and what it is assigned. Each has a record of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

MetadataT = TypeVar("MetadataT", covariant=True)
CurrentT = TypeVar("CurrentT", covariant=True)

LEAVE_GROUP_EPOCH: Final = -1
"""A heartbeat with this epoch leaves the group; a member whose assignment has a tombstone has it too."""
LEAVE_GROUP_STATIC_EPOCH: Final = -2
"""A static member that leaves for a while, and keeps what it has until its session ends."""


@dataclass(frozen=True, slots=True)
class ModernMember(Generic[MetadataT, CurrentT]):
    """A member: its id, and its two parts."""

    member_id: str
    metadata: MetadataT
    current: CurrentT


# --- bytes in memory: estimates, measured with CPython 3.11 and rounded up

TOPIC_NAME_BYTES: Final = 130
TOPIC_BYTES: Final = 450
"""A topic in an assignment."""
PARTITION_BYTES: Final = 100
"""A partition in an assignment, and its entry among all that are owned."""


def texts_bytes(*texts: str | None) -> int:
    """What texts of a member take."""
    return sum(2 * len(text or "") for text in texts)


def names_bytes(topic_names: Collection[str]) -> int:
    """What names of topics take."""
    return sum(TOPIC_NAME_BYTES + len(name) for name in topic_names)


def partitions_bytes(topics: Collection[Collection[int]]) -> int:
    """What the partitions of some topics take."""
    return sum(TOPIC_BYTES + PARTITION_BYTES * len(partitions) for partitions in topics)
