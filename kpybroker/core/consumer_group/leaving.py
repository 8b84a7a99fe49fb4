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

from kpybroker.core.consumer_group.members import LEAVE_GROUP_STATIC_EPOCH, Member, MemberState
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpoch,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    PatternRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.consumer_group.values import ConsumerHeartbeat
from kpybroker.core.machine import Step
from kpybroker.wire.errors import ErrorCode, KafkaError

RETRY_S: Final = 0.5
"""When a member that could not be fenced, because the append failed, is tried again."""
FENCED_AT_ONCE: Final = 500
"""All members of a group may end together: each writes three records, and a batch of the log has a largest size."""
_NOT_RENAMED: Final[Mapping[str, str]] = {}


def member_or_raise(group: ConsumerGroup, member_id: str) -> Member:
    """The member. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


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
    records = [record for member in members for record in member_tombstones(group_id, member.member_id)]
    patterns = Counter(member.metadata.pattern for member in members if member.metadata.pattern)
    records += [
        PatternRecord(group_id, pattern, None)
        for pattern, count in patterns.items()
        if group.pattern_counts[pattern] == count
    ]
    left = group.subscribed_topics([member.metadata for member in members])
    epoch = GroupEpoch(group.next_epoch, group.shared.metadata_hash(left))
    return [*records, GroupEpochRecord(group_id, epoch)]


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerRecord]:
    """What removes a member; Kafka cannot load another order."""
    return [
        CurrentRecord(group_id, member_id, None),
        TargetRecord(group_id, member_id, None),
        MemberRecord(group_id, member_id, None),
    ]


def group_tombstones(group: ConsumerGroup, renamed: Mapping[str, str] = _NOT_RENAMED) -> list[ConsumerRecord]:
    """What removes the whole group; Kafka cannot load another order.

    `renamed` has the new id of a static member that the same batch has replaced.
    """
    group_id = group.group_id
    members = [renamed.get(member_id, member_id) for member_id in group.members]
    targets = [renamed.get(member_id, member_id) for member_id in group.targets]
    return [
        *(CurrentRecord(group_id, member_id, None) for member_id in members),
        *(TargetRecord(group_id, member_id, None) for member_id in dict.fromkeys([*members, *targets])),
        TargetEpochRecord(group_id, None),
        *(MemberRecord(group_id, member_id, None) for member_id in members),
        *(PatternRecord(group_id, pattern, None) for pattern in group.patterns),
        PartitionMetadataRecord(group_id, None),
        GroupEpochRecord(group_id, None),
    ]


# --- timers


def on_timers(step: Step[Any], group: ConsumerGroup, due: Sequence[tuple[TimerKind, LiveMember]]) -> None:
    """Timers have ended: fence their members, in one batch, but those that have done what the timer was for.

    Above `FENCED_AT_ONCE`, the others are due again at once: in the next batch.
    """
    fenced: dict[str, Member] = {}
    retried = []
    for kind, live in due:
        member = group.members.get(live.member_id)
        if member is None or (reason := _reason(kind, live, member)) is None:
            continue
        if len(fenced) >= FENCED_AT_ONCE:
            group.shared.timers.start(kind, live, step.now.monotonic)
            continue
        step.info(f"[GroupId {group.group_id}] Member {live.member_id} fenced from the group because {reason}.")
        fenced[live.member_id] = member
        retried.append((kind, live))
    if fenced:
        step.write(fence(step, group, list(fenced.values())), partial(_on_fenced, group, retried))


def _reason(kind: TimerKind, live: LiveMember, member: Member) -> str | None:
    if kind is TimerKind.SESSION:
        return "the member session expired"
    if kind is not TimerKind.REBALANCE:
        if member.metadata.classic is None:
            return None
        if kind is TimerKind.JOIN:
            return "the classic member failed to join within the rebalance timeout"
        return "the member failed to sync within timeout"
    current, epoch = member.current, live.rebalance_epoch
    if current.state is not MemberState.UNREVOKED_PARTITIONS or current.member_epoch != epoch:
        return None
    return f"it failed to transition from epoch {epoch} within {member.metadata.rebalance_timeout_ms}ms"


def _on_fenced(
    group: ConsumerGroup, due: Sequence[tuple[TimerKind, LiveMember]], step: Step[Any], error: ErrorCode
) -> None:
    for kind, live in due if error is not ErrorCode.NONE else ():
        if group.live.get(live.member_id) is live:
            group.shared.timers.start(kind, live, step.now.monotonic + RETRY_S)


def start_rebalance_timer(group: ConsumerGroup, live: LiveMember, member: Member, now: float) -> None:
    """The member must give up partitions in time; one that need not any more has no timer.

    Nor has one that uses the classic protocol: it has to join and to sync in time.
    """
    current = member.current
    if member.metadata.classic is not None or current.state is not MemberState.UNREVOKED_PARTITIONS:
        group.shared.timers.stop(TimerKind.REBALANCE, live)
        return
    live.rebalance_epoch = current.member_epoch
    deadline = now + member.metadata.rebalance_timeout_ms / 1000
    group.shared.timers.start(TimerKind.REBALANCE, live, deadline)
