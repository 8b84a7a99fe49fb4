"""How members go: they leave, or a timer of theirs ends. The group goes to its next epoch, others get their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

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
from kpybroker.core.modern_group.records import RecordClasses
from kpybroker.core.modern_group.requests import member_or_raise
from kpybroker.core.modern_group.timers import LiveMember, TimerKind
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

CLASSES: Final = RecordClasses(StreamsMemberRecord, StreamsCurrentRecord, StreamsTargetRecord, StreamsTargetEpochRecord)


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
    """Remove members; the group goes to its next epoch."""
    member_ids = [member.member_id for member in members]
    epoch = StreamsGroupEpoch(
        group.next_epoch, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs
    )
    tombstones = member_tombstones(CLASSES, group.group_id, member_ids)
    return [*tombstones, StreamsGroupEpochRecord(group.group_id, epoch)]


def tombstones(group: StreamsGroup) -> list[StreamsRecord]:
    """What removes the whole group."""
    group_id = group.group_id
    last = [StreamsGroupEpochRecord(group_id, None), TopologyRecord(group_id, None)]
    return group_tombstones(CLASSES, group_id, group.members, group.targets, last)


# --- timers


def start_rebalance_timer(group: StreamsGroup, live: LiveMember, member: StreamsMember, now: float) -> None:
    """The member must give up tasks in time; one that need not any more has no timer."""
    current = member.current
    if current.state is not MemberState.UNREVOKED_TASKS:
        group.shared.timers.stop(TimerKind.REBALANCE, live)
        return
    restart_rebalance_timer(group, live, current.member_epoch, member.metadata.rebalance_timeout_ms, now)


def on_timers(step: Step[Any], group: StreamsGroup, due: Due) -> None:
    """Timers of members have ended: fence them, but those that gave up in time what others are to have."""
    fence_members(step, group, due, _reason, partial(fence, group))


def _reason(kind: TimerKind, live: LiveMember, member: StreamsMember) -> str | None:
    return session_reason(kind) or rebalance_reason(
        live, member.current.member_epoch, member.metadata.rebalance_timeout_ms
    )
