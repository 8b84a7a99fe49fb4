"""Who may commit offsets of a streams group: members, by their epoch or that of a task (KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.core.streams_group.members import StreamsMember
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.errors import ErrorCode


def commit_refusal(group: StreamsGroup, member_id: str, epoch: int, partitions: Iterable[PartitionKey]) -> ErrorCode:
    """NONE, or why the whole OffsetCommit is refused.

    Without an epoch it comes from an administrator: only while the group is empty. An older epoch of a member counts
    for partitions of active tasks that it already had then, also those that it must give up.
    """
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    current = member.current
    if epoch == current.member_epoch:
        return ErrorCode.NONE
    if epoch > current.member_epoch or not all(_had(group, member, epoch, one) for one in partitions):
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def fetch_refusal(group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """NONE, or why OffsetFetch is refused; a client that names no member and no epoch may read."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.current.member_epoch else ErrorCode.STALE_MEMBER_EPOCH


def _had(group: StreamsGroup, member: StreamsMember, epoch: int, partition: PartitionKey) -> bool:
    topic, task = partition
    subtopology_id = None if group.topology is None else group.topology.source_topics.get(topic)
    if subtopology_id is None:
        return False
    current = member.current
    assigned_in = current.assigned.epoch_of(subtopology_id, task)
    if assigned_in is None:
        assigned_in = current.pending_revocation.epoch_of(subtopology_id, task)
    return assigned_in is not None and epoch >= assigned_in
