"""The requests of the classic protocol, and of offsets: who handles each, for a group of that kind or for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kpybroker.core.group.committing import commit_offsets, delete_group, delete_offsets, fetch_offsets
from kpybroker.core.group.joining import join
from kpybroker.core.group.membership import heartbeat, leave, sync
from kpybroker.core.group.rebalance import (
    on_heartbeat_expired,
    on_rebalance_expired,
    on_sync_expired,
    remove_pending_member,
)
from kpybroker.core.group.room import Growing
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.timers import TimerKind, Timers
from kpybroker.core.group.values import (
    CommitOffsets,
    CommitResult,
    DeleteGroup,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribedGroup,
    DescribeGroup,
    FetchedOffset,
    FetchOffsets,
    FetchOffsetsResult,
    GroupState,
    Heartbeat,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.wire.errors import ErrorCode

ClassicRequest = (
    Join | Sync | Heartbeat | Leave | CommitOffsets | FetchOffsets | DescribeGroup | DeleteGroup | DeleteOffsets
)


def creates_group(request: Growing) -> bool:
    """Whether it makes the group that there is not.

    A join without a member id creates the group; so does a commit by a client that assigns partitions itself.
    """
    if isinstance(request, Join):
        return not request.member_id
    if not isinstance(request, CommitOffsets):
        return False
    return request.generation_id < 0 or (request.is_transactional and not request.as_kafka_4)


def _describe(step: GroupStep, group: Group, request: DescribeGroup, ticket: Ticket) -> None:
    is_stable = group.state is GroupState.STABLE
    described = DescribedGroup(
        error=ErrorCode.NONE,
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_name=(group.protocol_name or "") if is_stable else "",
        members=group.described_members(),
    )
    step.reply(ticket, described)


def _no_offsets(request: FetchOffsets) -> FetchOffsetsResult:
    return FetchOffsetsResult(ErrorCode.NONE, {partition: FetchedOffset() for partition in request.partitions or ()})


def _no_group_to_commit_to(request: CommitOffsets) -> CommitResult:
    is_not_found = request.as_kafka_4 and request.has_member_epoch and not request.is_transactional
    error = ErrorCode.GROUP_ID_NOT_FOUND if is_not_found else ErrorCode.ILLEGAL_GENERATION
    return CommitResult(dict.fromkeys(request.offsets, error))


def _not_found(request: DescribeGroup) -> DescribedGroup:
    text = f"Group {request.group_id} not found."
    return DescribedGroup(ErrorCode.NONE, state=GroupState.DEAD.value, not_found=text)


_Handler = Callable[[GroupStep, Group, Any, Ticket], None]

HANDLERS: Final[Mapping[type[Any], _Handler]] = {
    Join: join,
    Sync: sync,
    Heartbeat: heartbeat,
    Leave: leave,
    CommitOffsets: commit_offsets,
    FetchOffsets: fetch_offsets,
    DescribeGroup: _describe,
    DeleteGroup: lambda step, group, request, ticket: delete_group(step, group, ticket),
    DeleteOffsets: delete_offsets,
}

RESULT_WITHOUT_GROUP: Final[Mapping[type[Any], Callable[[Any], object]]] = {
    Join: lambda request: JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id),
    Sync: lambda request: SyncResult(ErrorCode.UNKNOWN_MEMBER_ID),
    Heartbeat: lambda request: ErrorCode.UNKNOWN_MEMBER_ID,
    Leave: lambda request: LeaveResult(
        ErrorCode.NONE, tuple((member, ErrorCode.UNKNOWN_MEMBER_ID) for member in request.members)
    ),
    CommitOffsets: _no_group_to_commit_to,
    FetchOffsets: _no_offsets,
    DescribeGroup: _not_found,
    DeleteGroup: lambda request: ErrorCode.GROUP_ID_NOT_FOUND,
    DeleteOffsets: lambda request: DeleteOffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND),
}


def expire_classic(step: GroupStep, timers: Timers) -> None:
    """Run the timers of classic groups that are due."""
    for timer in timers.pop_due(step.now.monotonic):
        group = timer.group
        if group.state is GroupState.DEAD or not timers.is_current(timer, step.now.monotonic):
            continue
        match timer.kind:
            case TimerKind.HEARTBEAT:
                assert timer.member is not None
                on_heartbeat_expired(step, group, timer.member)
            case TimerKind.PENDING_MEMBER:
                step.info(
                    f"Pending member {timer.pending_member_id} in group {group.group_id} "
                    "has been removed after session timeout expiration."
                )
                remove_pending_member(step, group, timer.pending_member_id)
            case TimerKind.REBALANCE:
                on_rebalance_expired(step, group)
            case TimerKind.SYNC:
                on_sync_expired(step, group)
