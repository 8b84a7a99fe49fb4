"""Groups of many members as their records leave them: settled, each member with one partition of one topic."""

from __future__ import annotations

from collections.abc import Iterator

from kpybroker.core.consumer_group.members import CurrentAssignment, MemberMetadata, MemberState
from kpybroker.core.consumer_group.records import (
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.group.records import GroupRecord, Record, StoredGroup, StoredMember
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from tests.core.consumer_group.harness import classic_assignment, classic_subscription

EPOCH = 3
TOPIC_ID = b"1" * 16


def member_ids(count: int) -> list[str]:
    return [f"member-{number:05d}-0123456789abcdef" for number in range(count)]


def settled_consumer_group(group_id: str, count: int, topic: str = "t", topic_id: bytes = TOPIC_ID) -> Iterator[Record]:
    """In the order in which a group is upgraded, which is one batch."""
    names = member_ids(count)
    metadata = MemberMetadata(
        client_id="c", client_host="/127.0.0.1", topic_names=frozenset((topic,)), rebalance_timeout_ms=60_000
    )
    for name in names:
        yield MemberRecord(group_id, name, metadata)
    yield GroupEpochRecord(group_id, GroupEpoch(EPOCH))
    for number, name in enumerate(names):
        yield TargetRecord(group_id, name, {topic_id: frozenset((number,))})
    yield TargetEpochRecord(group_id, TargetEpoch(EPOCH, 1))
    for number, name in enumerate(names):
        assigned = {topic_id: {number: EPOCH}}
        yield CurrentRecord(group_id, name, CurrentAssignment(EPOCH, EPOCH - 1, MemberState.STABLE, assigned))


def settled_classic_group(group_id: str, count: int, topic: str = "t") -> GroupRecord:
    """The one record of its generation."""
    subscription = classic_subscription((topic,), {})
    members = tuple(
        StoredMember(
            member_id=name,
            group_instance_id=None,
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=45_000,
            subscription=subscription,
            assignment=classic_assignment(f"{topic}:{number}"),
        )
        for number, name in enumerate(member_ids(count))
    )
    leader = members[0].member_id if members else None
    return GroupRecord(group_id, StoredGroup("consumer", EPOCH, "range", leader, 1, members))
