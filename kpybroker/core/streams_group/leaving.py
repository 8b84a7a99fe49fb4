"""How members go: they leave, or a timer of theirs ends. The group goes to its next epoch, others get their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kpybroker.core.consumer_group.leaving import FENCED_AT_ONCE, RETRY_S
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
from kpybroker.core.machine import Step
from kpybroker.core.streams_group.members import MemberState, StreamsMember
from kpybroker.core.streams_group.records import (
    StreamsCurrentRecord,
    StreamsGroupEpoch,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.values import StreamsHeartbeat
from kpybroker.wire.errors import ErrorCode, KafkaError


def member_or_raise(group: StreamsGroup, member_id: str) -> StreamsMember:
    """The member. Raises UNKNOWN_MEMBER_ID."""
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def request_shutdown(step: Step[Any], group: StreamsGroup, member_id: str) -> None:
    """All members are to stop, until the group is empty; the first that asked for it is named to the others."""
    if group.shutdown_member_id is None:
        step.info(f"[GroupId {group.group_id}][MemberId {member_id}] Shutdown requested for the streams application.")
        group.shutdown_member_id = member_id


def leave(step: Step[Any], group: StreamsGroup, request: StreamsHeartbeat) -> list[StreamsRecord]:
    """The records of a heartbeat with epoch -1. Raises UNKNOWN_MEMBER_ID."""
    if request.shutdown_application:
        request_shutdown(step, group, request.member_id)
    member = member_or_raise(group, request.member_id)
    step.info(f"[GroupId {group.group_id}] Member {member.member_id} left the streams group.")
    return fence(group, [member])


def fence(group: StreamsGroup, members: Sequence[StreamsMember]) -> list[StreamsRecord]:
    """Remove members; the group goes to its next epoch. Kafka cannot load another order."""
    group_id = group.group_id
    records: list[StreamsRecord] = []
    for member in members:
        records += [
            StreamsCurrentRecord(group_id, member.member_id, None),
            StreamsTargetRecord(group_id, member.member_id, None),
            StreamsMemberRecord(group_id, member.member_id, None),
        ]
    epoch = StreamsGroupEpoch(
        group.next_epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
    )
    return [*records, StreamsGroupEpochRecord(group_id, epoch)]


def group_tombstones(group: StreamsGroup) -> list[StreamsRecord]:
    """What removes the whole group; Kafka cannot load another order."""
    group_id = group.group_id
    return [
        *(StreamsCurrentRecord(group_id, member_id, None) for member_id in group.members),
        *(
            StreamsTargetRecord(group_id, member_id, None)
            for member_id in dict.fromkeys([*group.members, *group.targets])
        ),
        StreamsTargetEpochRecord(group_id, None),
        *(StreamsMemberRecord(group_id, member_id, None) for member_id in group.members),
        StreamsGroupEpochRecord(group_id, None),
        TopologyRecord(group_id, None),
    ]


# --- timers


def start_rebalance_timer(group: StreamsGroup, live: LiveMember, member: StreamsMember, now: float) -> None:
    """The member must give up tasks in time; one that need not any more has no timer."""
    current = member.current
    if current.state is not MemberState.UNREVOKED_TASKS:
        group.shared.timers.stop(TimerKind.REBALANCE, live)
        return
    live.rebalance_epoch = current.member_epoch
    deadline = now + member.metadata.rebalance_timeout_ms / 1000
    group.shared.timers.start(TimerKind.REBALANCE, live, deadline)


def on_timers(step: Step[Any], group: StreamsGroup, due: Sequence[tuple[TimerKind, LiveMember]]) -> None:
    """Timers of members have ended: fence them, in one batch; above `FENCED_AT_ONCE`, the others in the next one."""
    fenced: dict[str, StreamsMember] = {}
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
        step.write(fence(group, list(fenced.values())), partial(_on_fenced, group, retried))


def _reason(kind: TimerKind, live: LiveMember, member: StreamsMember) -> str | None:
    if kind is TimerKind.SESSION:
        return "the member session expired"
    epoch = live.rebalance_epoch
    if member.current.member_epoch != epoch:
        return None
    return f"it failed to transition from epoch {epoch} within {member.metadata.rebalance_timeout_ms}ms"


def _on_fenced(
    group: StreamsGroup, due: Sequence[tuple[TimerKind, LiveMember]], step: Step[Any], error: ErrorCode
) -> None:
    for kind, live in due if error is not ErrorCode.NONE else ():
        if group.live.get(live.member_id) is live:
            group.shared.timers.start(kind, live, step.now.monotonic + RETRY_S)
