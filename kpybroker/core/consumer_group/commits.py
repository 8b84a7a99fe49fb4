"""Who may commit and fetch offsets of a consumer group: members, by their epoch or a partition's (KIP-1251)."""

from __future__ import annotations

from collections.abc import Iterable

from kpybroker.core.consumer_group.members import Member
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.errors import ErrorCode


def commit_refusal(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, partitions: Iterable[PartitionKey]
) -> ErrorCode:
    """NONE, or why the whole OffsetCommit is refused.

    Without an epoch it comes from an administrator, or from a client that assigns partitions itself: only while the
    group is empty. The epoch of a member is that of its last response; an older one counts for partitions that it
    already had then, also those that it must give up.
    """
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.current.member_epoch:
        return ErrorCode.NONE
    is_stale = epoch > member.current.member_epoch or any(
        not _had(group, member, epoch, partition) for partition in partitions
    )
    return _stale(member) if is_stale else ErrorCode.NONE


def transactional_commit_refusal(
    group: ConsumerGroup, member_id: str, instance_id: str | None, epoch: int, partitions: Iterable[PartitionKey]
) -> ErrorCode:
    """The same for TxnOffsetCommit: old producers do not name their member, and clients know no stale epochs."""
    if epoch == -1 and not member_id and instance_id is None:
        return ErrorCode.NONE
    error = commit_refusal(group, member_id, instance_id, epoch, partitions)
    return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error


def fetch_refusal(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """NONE, or why OffsetFetch is refused; a client that names no member and no epoch may read."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.current.member_epoch else _stale(member)


def uses_consumer_protocol(group: ConsumerGroup, member_id: str) -> bool:
    """Whether a member of that id uses the new protocol: then it commits with OffsetCommit 9 or later."""
    member = group.members.get(member_id)
    return member is not None and member.metadata.classic is None


def _had(group: ConsumerGroup, member: Member, epoch: int, partition: PartitionKey) -> bool:
    topic = group.shared.topics.by_name(partition[0])
    assigned_in = None if topic is None else member.current.epoch_of(topic.topic_id, partition[1])
    return assigned_in is not None and epoch >= assigned_in


def _stale(member: Member) -> ErrorCode:
    return ErrorCode.STALE_MEMBER_EPOCH if member.metadata.classic is None else ErrorCode.ILLEGAL_GENERATION
