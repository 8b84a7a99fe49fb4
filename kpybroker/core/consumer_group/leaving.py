"""How members go: they leave, for good or for a while (static ones), or are fenced when a timer ends.

A member that goes takes the group to its next epoch, so that its partitions are given to others. One that leaves for a
while (epoch -2) keeps them until its session ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kpybroker.core.consumer_group.members import Member, MemberState
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import ConsumerHeartbeat
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.leaving import (
    Due,
    fence_members,
    group_tombstones,
    member_tombstones,
    rebalance_reason,
    restart_rebalance_timer,
    session_reason,
)
from kpybroker.core.modern_group.members import LEAVE_GROUP_STATIC_EPOCH
from kpybroker.core.modern_group.records import GroupEpoch, RecordClasses
from kpybroker.core.modern_group.requests import member_or_raise
from kpybroker.core.modern_group.timers import LiveMember, TimerKind
from kpybroker.wire.errors import ErrorCode, KafkaError

CLASSES: Final = RecordClasses(MemberRecord, CurrentRecord, TargetRecord, TargetEpochRecord)
_NOT_RENAMED: Final[Mapping[str, str]] = {}


def static_or_raise(group: ConsumerGroup, member_id: str, instance_id: str) -> Member:
    """The member that has the instance id. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID if it has another member id."""
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def leave(step: Step[Any], group: ConsumerGroup, request: ConsumerHeartbeat) -> list[Any]:
    """The records of a heartbeat with epoch -1 or -2. Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    member_id, instance_id = request.member_id, request.instance_id
    if instance_id is None:
        member = member_or_raise(group, member_id)
        step.info(f"[GroupId {group.group_id}] Member {member_id} left the consumer group.")
        return fence(step, group, [member])
    member = static_or_raise(group, member_id, instance_id)
    away = request.member_epoch == LEAVE_GROUP_STATIC_EPOCH
    step.info(
        f"[GroupId {group.group_id}] Static member {member_id} with instance id {instance_id} "
        f"{'temporarily ' if away else ''}left the consumer group."
    )
    return [_away(group, member)] if away else fence(step, group, [member])


def _away(group: ConsumerGroup, member: Member) -> ConsumerRecord:
    """It keeps what it has, from epoch 0 on: so the next member of this instance id may commit for it."""
    current = replace(
        member.current,
        member_epoch=LEAVE_GROUP_STATIC_EPOCH,
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.current.assigned.items()},
        pending_revocation={},
    )
    return CurrentRecord(group.group_id, member.member_id, current)


def fence(step: Step[Any], group: ConsumerGroup, members: Sequence[Member]) -> list[Any]:
    """Remove members, and the patterns that no one else has; the group goes to its next epoch.

    Or it becomes a classic group, if only members of the classic protocol are left.
    """
    group_id = group.group_id
    downgrade = group.shared.downgrade(step, group, members)
    if downgrade is not None:
        return downgrade
    records = member_tombstones(CLASSES, group_id, [member.member_id for member in members])
    patterns = Counter(member.metadata.pattern for member in members if member.metadata.pattern)
    records += [
        PatternRecord(group_id, pattern, None)
        for pattern, count in patterns.items()
        if group.pattern_counts[pattern] == count
    ]
    left = group.subscribed_topics([member.metadata for member in members])
    epoch = GroupEpoch(group.next_epoch, group.shared.metadata_hash(left))
    return [*records, GroupEpochRecord(group_id, epoch)]


def tombstones(group: ConsumerGroup, renamed: Mapping[str, str] = _NOT_RENAMED) -> list[ConsumerRecord]:
    """What removes the whole group. `renamed` has the new id of a static member that the same batch has replaced."""
    group_id = group.group_id
    members = [renamed.get(member_id, member_id) for member_id in group.members]
    targets = [renamed.get(member_id, member_id) for member_id in group.targets]
    last = [
        *(PatternRecord(group_id, pattern, None) for pattern in group.patterns),
        PartitionMetadataRecord(group_id, None),
        GroupEpochRecord(group_id, None),
    ]
    return group_tombstones(CLASSES, group_id, members, targets, last)


# --- timers


def on_timers(step: Step[Any], group: ConsumerGroup, due: Due) -> None:
    """Timers of members have ended: fence them, but those that have done what the timer was for."""
    fence_members(step, group, due, _reason, partial(fence, step, group))


def _reason(kind: TimerKind, live: LiveMember, member: Member) -> str | None:
    if kind is TimerKind.JOIN or kind is TimerKind.SYNC:
        if member.metadata.classic is None:
            return None
        if kind is TimerKind.JOIN:
            return "the classic member failed to join within the rebalance timeout"
        return "the member failed to sync within timeout"
    if kind is TimerKind.REBALANCE and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
        return None
    return session_reason(kind) or rebalance_reason(
        live, member.current.member_epoch, member.metadata.rebalance_timeout_ms
    )


def start_rebalance_timer(group: ConsumerGroup, live: LiveMember, member: Member, now: float) -> None:
    """The member must give up partitions in time; one that need not any more has no timer.

    Nor has one that uses the classic protocol: it has to join and to sync in time.
    """
    current = member.current
    if member.metadata.classic is not None or current.state is not MemberState.UNREVOKED_PARTITIONS:
        group.shared.timers.stop(TimerKind.REBALANCE, live)
        return
    restart_rebalance_timer(group, live, current.member_epoch, member.metadata.rebalance_timeout_ms, now)
