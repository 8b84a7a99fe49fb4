"""SyncGroup, Heartbeat, LeaveGroup: what a member sends after it has joined.

The leader's SyncGroup carries the assignment. It is written to the log first. When it is committed, the members receive
it and the group becomes stable (GroupCoordinator.doSyncGroup, 3.9).
"""

from __future__ import annotations

from functools import partial

from kpybroker.core.group.joining import validate_member
from kpybroker.core.group.rebalance import (
    fail_assignment,
    maybe_prepare_rebalance,
    member_has_synced,
    propagate_assignment,
    remove_member,
    remove_pending_member,
    respond_to_sync,
    restart_session,
    store_error,
)
from kpybroker.core.group.records import GroupRecord
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    UNKNOWN_MEMBER_ID,
    GroupState,
    Heartbeat,
    Leave,
    LeaveResult,
    LeavingMember,
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.wire.errors import ErrorCode

# --- SyncGroup


def sync(step: GroupStep, group: Group, request: Sync, ticket: Ticket) -> None:
    """Handle SyncGroup: reply with the assignment, or wait until the leader's is committed."""
    error = _validate_sync(group, request)
    if error is not ErrorCode.NONE:
        step.reply(ticket, SyncResult(error))
    elif group.state is GroupState.PREPARING_REBALANCE:
        step.reply(ticket, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    elif group.state is GroupState.COMPLETING_REBALANCE:
        _sync_completing(step, group, request, ticket)
    else:
        assert group.state is GroupState.STABLE
        member = group.members[request.member_id]
        member_has_synced(group, request.member_id)
        result = SyncResult(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)
        step.reply(ticket, result)
        restart_session(step, group, member)


def _validate_sync(group: Group, request: Sync) -> ErrorCode:
    error = validate_member(group, request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name is not None and request.protocol_name != group.protocol_name:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _sync_completing(step: GroupStep, group: Group, request: Sync, ticket: Ticket) -> None:
    member_id = request.member_id
    # End a previous sync of the member on another connection; Kafka never responds to it.
    respond_to_sync(step, group, member_id, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    group.sync_tickets[member_id] = ticket
    member_has_synced(group, member_id)
    if member_id != group.leader_id:
        return
    generation_id = group.generation_id
    step.info(
        f"Assignment received from leader {member_id} for group {group.group_id} for generation "
        f"{generation_id}. The group has {len(group.members)} members, {len(group.static_members)} of which "
        "are static."
    )
    missing = [other for other in group.members if other not in request.assignments]
    if missing:
        step.warn(f"Setting empty assignments for members {missing} of {group.group_id} for generation {generation_id}")
    assignment = {other: bytes(request.assignments.get(other, b"")) for other in group.members}
    done = partial(_on_assignment_stored, group, generation_id, member_id, assignment)
    step.write([GroupRecord(group.group_id, group.to_stored(assignment))], done)


def _on_assignment_stored(
    group: Group,
    generation_id: int,
    leader_id: str,
    assignment: dict[str, bytes],
    step: GroupStep,
    error: ErrorCode,
) -> None:
    if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
        return  # a member joined or left before the record was committed: all have their responses
    if error is not ErrorCode.NONE:
        error = store_error(error)
        fail_assignment(step, group, error)
        reason = f"Error {error.name} when storing group assignment during SyncGroup (member: {leader_id})"
        maybe_prepare_rebalance(step, group, reason)
        return
    for member_id, member in group.members.items():
        member.assignment = assignment[member_id]
    propagate_assignment(step, group, ErrorCode.NONE)
    group.transition_to(GroupState.STABLE, step.now.wall_ms)
    step.counts.completed_rebalances += 1


# --- Heartbeat


def heartbeat(step: GroupStep, group: Group, request: Heartbeat, ticket: Ticket) -> None:
    """Handle Heartbeat: restart the member's session; REBALANCE_IN_PROGRESS asks it to rejoin."""
    error = validate_member(group, request.member_id, request.group_instance_id)
    if error is ErrorCode.NONE and request.generation_id != group.generation_id:
        error = ErrorCode.ILLEGAL_GENERATION
    if error is ErrorCode.NONE:
        restart_session(step, group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
    step.reply(ticket, error)


# --- LeaveGroup


def leave(step: GroupStep, group: Group, request: Leave, ticket: Ticket) -> None:
    """Handle LeaveGroup: remove each member, and reply with one error a member."""
    errors = tuple((member, _leave_one(step, group, member)) for member in request.members)
    step.reply(ticket, LeaveResult(ErrorCode.NONE, errors))


def _leave_one(step: GroupStep, group: Group, leaving: LeavingMember) -> ErrorCode:
    """Remove one member. Without a member id, an administrator removes a static member by its instance id."""
    member_id = leaving.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        current = group.static_members.get(leaving.group_instance_id or "")
        if leaving.group_instance_id is None or current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = current
    elif member_id in group.pending_members:
        remove_pending_member(step, group, member_id)
        step.info(f"Pending member with memberId={member_id} has left group {group.group_id} through LeaveGroup")
        return ErrorCode.NONE
    else:
        error = validate_member(group, member_id, leaving.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    reason = f"Removing member {member_id} on LeaveGroup; client reason: {leaving.reason or 'not provided'}"
    step.info(f"Member {member_id} has left group {group.group_id} through explicit LeaveGroup")
    remove_member(step, group, member_id, reason)
    return ErrorCode.NONE
