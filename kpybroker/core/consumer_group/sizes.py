"""What members of consumer groups cost in memory: estimates in bytes, measured with CPython 3.11 and rounded up."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.members import CurrentAssignment, Member, MemberMetadata

CONSUMER_GROUP_BYTES: Final = 2_500
CONSUMER_MEMBER_BYTES: Final = 1_500
"""A member without names and partitions: its objects, entries of tables, its timers."""
TOPIC_NAME_BYTES: Final = 130
TOPIC_BYTES: Final = 450
"""A topic in an assignment."""
PARTITION_BYTES: Final = 100
"""A partition in an assignment, and its entry among all that are owned."""


def member_bytes(member: Member, target: Partitions) -> int:
    """What a member takes, its assignments included."""
    return metadata_bytes(member.member_id, member.metadata) + _assignment_bytes(member.current, target)


def metadata_bytes(member_id: str, metadata: MemberMetadata) -> int:
    """What a member takes that is assigned nothing."""
    texts = (
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
        + sum(2 * len(text or "") for text in texts)
        + names_bytes(metadata.topic_names)
        + sum(TOPIC_NAME_BYTES + len(name) + len(data) for name, data in protocols)
    )


def names_bytes(topic_names: Collection[str]) -> int:
    """What names of topics take."""
    return sum(TOPIC_NAME_BYTES + len(name) for name in topic_names)


def _assignment_bytes(current: CurrentAssignment, target: Partitions) -> int:
    parts = (current.assigned, current.pending_revocation, target)
    return sum(TOPIC_BYTES + PARTITION_BYTES * len(partitions) for part in parts for partitions in part.values())
