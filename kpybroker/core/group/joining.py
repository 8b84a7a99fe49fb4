"""JoinGroup: which members are accepted, under which id, and when that starts a rebalance.

Four cases (GroupCoordinator.handleJoinGroup, 3.9): a new dynamic member, which from version 4 on first receives an id
to rejoin with (KIP-394); that member rejoining; a new static member, or the next instance of one, which takes over the
assignment of the last and fences it (KIP-345); a member of the present generation rejoining.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kpybroker.core.group.members import Member
from kpybroker.core.group.rebalance import (
    joined,
    maybe_complete_join,
    maybe_prepare_rebalance,
    prepare_rebalance,
    respond_to_join,
    respond_to_sync,
    restart_session,
    store_error,
)
from kpybroker.core.group.records import GroupRecord
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    UNKNOWN_MEMBER_ID,
    GroupState,
    Join,
    JoinResult,
    Protocols,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.wire.errors import ErrorCode


def join(step: GroupStep, group: Group, request: Join, ticket: Ticket) -> None:
    """Handle a JoinGroup request: reply now, or keep its ticket until the rebalance completes."""
    if not _is_accepted(step, group, request.member_id):
        group.remove(request.member_id)
        step.reply(ticket, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
    elif not group.supports_protocols(request.protocol_type, [name for name, _ in request.protocols]):
        step.reply(ticket, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    elif request.member_id != UNKNOWN_MEMBER_ID:
        _join_with_id(step, group, request, ticket)
    elif request.group_instance_id is not None:
        _join_static(step, group, request, ticket)
    else:
        _join_dynamic(step, group, request, ticket)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step, group)


def _is_accepted(step: GroupStep, group: Group, member_id: str) -> bool:
    """Whether `group.max.size` allows the member. During the join phase, only waiting members count."""
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return member_id in group.join_tickets or len(group.join_tickets) < step.config.group_max_size
    return member_id in group.members or len(group.members) < step.config.group_max_size


def validate_member(group: Group, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """NONE for a member of the group that also holds the instance id it names, if any."""
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is not None and current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


# --- new members


def _join_dynamic(step: GroupStep, group: Group, request: Join, ticket: Ticket) -> None:
    member_id = request.new_member_id
    if request.require_known_member_id:
        step.info(
            f"Dynamic member with unknown member id joins group {group.group_id} in {group.state.value} "
            f"state. Created a new member id {member_id} and request the member to rejoin with this id."
        )
        step.timers.pending_member(group, member_id, step.after(request.session_timeout_ms), request.owner)
        step.reply(ticket, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    else:
        _add_member(step, group, request, member_id, ticket)


def _add_member(step: GroupStep, group: Group, request: Join, member_id: str, ticket: Ticket) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.generation_id == 0:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = request.protocol_type
    member = Member(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=request.protocols,
        owner=request.owner,
        protocols_size=request.protocols_size,
    )
    member.is_new = True
    group.add(member)
    group.join_tickets[member_id] = ticket
    # A new member does not know its id and cannot send heartbeats, and a muted socket does not show a lost client.
    # Its join is therefore ended after five minutes; a client that is still there retries.
    step.timers.heartbeat(group, member, step.after(NEW_MEMBER_JOIN_TIMEOUT_MS))
    reason = f"Adding new member {member_id} with group instance id {request.group_instance_id}"
    maybe_prepare_rebalance(step, group, f"{reason}; client reason: {request.reason}")


# --- static members


def _join_static(step: GroupStep, group: Group, request: Join, ticket: Ticket) -> None:
    assert request.group_instance_id is not None
    old_member_id = group.static_members.get(request.group_instance_id)
    if old_member_id is None:
        _add_member(step, group, request, request.new_member_id, ticket)
    else:
        step.info(
            f"Static member with groupInstanceId={request.group_instance_id} and unknown member id joins "
            f"group {group.group_id} in {group.state.value} state. Replacing previously mapped member "
            f"{old_member_id} with this groupInstanceId."
        )
        _replace_static(step, group, request, old_member_id, ticket)


def _replace_static(step: GroupStep, group: Group, request: Join, old_member_id: str, ticket: Ticket) -> None:
    instance_id, member_id = request.group_instance_id, request.new_member_id
    assert instance_id is not None
    old_leader = group.leader_id
    member = _rename_static(step, group, instance_id, old_member_id, member_id)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    _update_member(group, member, request)
    group.join_tickets[member_id] = ticket
    if group.state is GroupState.STABLE:
        if group.select_protocol() == group.protocol_name:
            # Nothing that the assignment depends on has changed: no rebalance. But the new id must be in the log.
            assignment = {other.member_id: other.assignment for other in group.members.values()}
            undo = partial(_undo_replace, group, instance_id, old_member_id, member, before)
            replacement = _Replacement(member, old_leader, request.support_skipping_assignment, undo)
            done = partial(_on_static_stored, group, replacement)
            step.write([GroupRecord(group.group_id, group.to_stored(assignment))], done)
        else:
            maybe_prepare_rebalance(
                step,
                group,
                f"Group's selectedProtocol will change because static member {member_id} with instance id "
                f"{instance_id} joined with change of protocol; client reason: {request.reason}",
            )
    elif group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may be computing an assignment for the old id: rebalance again.
        prepare_rebalance(
            step,
            group,
            f"Updating metadata for static member {member_id} with instance id {instance_id}; "
            f"client reason: {request.reason}",
        )
    else:
        assert group.state is GroupState.PREPARING_REBALANCE


def _rename_static(step: GroupStep, group: Group, instance_id: str, old_id: str, new_id: str) -> Member:
    """Fence the old instance in any request it waits in, and give its membership to the new id."""
    respond_to_join(step, group, old_id, JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
    respond_to_sync(step, group, old_id, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
    member = group.replace_static_member(instance_id, old_id, new_id)
    restart_session(step, group, member)
    return member


def _undo_replace(
    group: Group,
    instance_id: str,
    old_member_id: str,
    member: Member,
    before: tuple[Protocols, int, int],
    step: GroupStep,
) -> None:
    protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
    _rename_static(step, group, instance_id, member.member_id, old_member_id)
    group.set_protocols(member, protocols)


class _Replacement(NamedTuple):
    """A static member's new instance whose id is being stored, and how to reply and to undo it."""

    member: Member
    old_leader: str | None
    support_skipping_assignment: bool
    undo: partial[None]


def _on_static_stored(group: Group, replacement: _Replacement, step: GroupStep, error: ErrorCode) -> None:
    member, old_leader, support_skipping_assignment, undo = replacement
    member_id = member.member_id
    if group.state is GroupState.DEAD or group.members.get(member_id) is not member:
        return  # it has left or was replaced since, and got its response then
    if error is not ErrorCode.NONE:
        step.warn(f"Failed to persist metadata for group {group.group_id}: {error.name}")
        failed = replace(joined(group, UNKNOWN_MEMBER_ID, with_members=False), error=store_error(error))
        respond_to_join(step, group, member_id, replace(failed, leader=old_leader or ""))
        undo(step)
    elif group.state is not GroupState.PREPARING_REBALANCE:
        # From version 9 on, a leader is asked to skip the assignment (KIP-814). An older client gets the old leader's
        # id instead: it acts as a follower, and computes no assignment that a stable group would ignore.
        skip = support_skipping_assignment and member_id == group.leader_id
        result = replace(joined(group, member_id, with_members=skip), skip_assignment=skip)
        leader = group.leader_id if support_skipping_assignment else old_leader
        respond_to_join(step, group, member_id, replace(result, leader=leader or ""))


# --- members of the present generation


def _join_with_id(step: GroupStep, group: Group, request: Join, ticket: Ticket) -> None:
    member_id = request.member_id
    if member_id in group.pending_members:
        if request.group_instance_id is not None:
            # Only dynamic members receive an id to rejoin with.
            step.reply(ticket, JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, UNKNOWN_MEMBER_ID))
            return
        _add_member(step, group, request, member_id, ticket)
        return
    error = validate_member(group, member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        step.reply(ticket, JoinResult(error, member_id))
        return
    member = group.members[member_id]
    is_leader = member_id == group.leader_id
    reason = _rebalance_reason(group, member, request, is_leader)
    if reason is None:
        # It may not have received the first response to this generation's join.
        with_members = is_leader and group.state is GroupState.COMPLETING_REBALANCE
        step.reply(ticket, joined(group, member_id, with_members=with_members))
        return
    _supersede(step, group, member_id)
    _update_member(group, member, request)
    group.join_tickets[member_id] = ticket
    maybe_prepare_rebalance(step, group, f"{reason}; client reason: {request.reason}")


def _rebalance_reason(group: Group, member: Member, request: Join, is_leader: bool) -> str | None:
    """Why this join needs a new generation; None if the present one stays valid.

    The leader of a stable group rejoins when it wants to assign again, for example because of new partitions.
    """
    member_id, state = member.member_id, group.state
    if state is GroupState.PREPARING_REBALANCE:
        return f"Member {member_id} joining group during {state.value}"
    if state is GroupState.STABLE and is_leader:
        return f"Leader {member_id} re-joining group during {state.value}"
    if member.protocols != request.protocols:
        return f"Updating metadata for member {member_id} during {state.value}"
    return None


def _supersede(step: GroupStep, group: Group, member_id: str) -> None:
    """The member rejoins on another connection: end its previous join, to which Kafka never responds."""
    respond_to_join(step, group, member_id, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member_id))


def _update_member(group: Group, member: Member, request: Join) -> None:
    group.set_protocols(member, request.protocols, request.owner, request.protocols_size)
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
