"""From one generation to the next: start a rebalance, complete it, and remove members that do not take part.

The rules of GroupCoordinator (3.9): a rebalance ends when every member has joined and no id is pending, or at the
largest rebalance timeout. One that starts from Empty waits `group.initial.rebalance.delay.ms` instead, and again as
long while new members join a group that never had a generation (KIP-134). Dynamic members that have not rejoined by
then are removed. Static ones stay; if no member rejoined, the wait starts again until sessions end. After the join
phase, members that do not sync within the rebalance timeout are removed too.
"""

from __future__ import annotations

from functools import partial

from kpybroker.core.group.members import Member, RebalanceTimer
from kpybroker.core.group.records import GroupRecord
from kpybroker.core.group.state import Group
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    UNKNOWN_MEMBER_ID,
    GroupState,
    JoinResult,
    SyncResult,
)
from kpybroker.wire.errors import ErrorCode

# A client may ask for a rebalance timeout of 0; waiting for static members must not become a busy loop.
RETRY_DELAY_MIN_MS = 100

# What a failed append of group metadata means to a member (GroupMetadataManager.storeGroup).
_STORE_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def store_error(error: ErrorCode) -> ErrorCode:
    """The error a member gets for a failed append of group metadata; unlisted errors pass unchanged."""
    return _STORE_ERRORS.get(error, error)


# --- responding to members that wait


def respond_to_join(step: GroupStep, group: Group, member_id: str, result: JoinResult) -> None:
    """Respond to the member's JoinGroup if it waits in one."""
    if member_id in group.join_tickets:
        step.reply(group.join_tickets.pop(member_id), result)


def respond_to_sync(step: GroupStep, group: Group, member_id: str, result: SyncResult) -> bool:
    """Respond to the member's SyncGroup if it waits in one, and say whether it did."""
    if member_id not in group.sync_tickets:
        return False
    step.reply(group.sync_tickets.pop(member_id), result)
    return True


def joined(group: Group, member_id: str, *, with_members: bool) -> JoinResult:
    """The group's present generation as the reply to a join."""
    return JoinResult(
        error=ErrorCode.NONE,
        member_id=member_id,
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        members=group.member_metadata() if with_members else (),
    )


def propagate_assignment(step: GroupStep, group: Group, error: ErrorCode) -> None:
    """Respond to every waiting SyncGroup, and restart those members' sessions, which do not run while they wait."""
    ok = error is ErrorCode.NONE
    for member_id, member in group.members.items():
        result = SyncResult(
            error=error,
            protocol_type=group.protocol_type if ok else None,
            protocol_name=group.protocol_name if ok else None,
            assignment=member.assignment,
        )
        if respond_to_sync(step, group, member_id, result):
            restart_session(step, group, member)


def fail_assignment(step: GroupStep, group: Group, error: ErrorCode) -> None:
    """Drop every assignment and fail the waiting SyncGroups with `error`."""
    assert group.state is GroupState.COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = b""
    propagate_assignment(step, group, error)


# --- sessions


def restart_session(step: GroupStep, group: Group, member: Member) -> None:
    """The member's session timeout starts again now."""
    step.timers.heartbeat(group, member, step.after(member.session_timeout_ms))


def on_heartbeat_expired(step: GroupStep, group: Group, member: Member) -> None:
    """Remove the member, unless it waits in a join or sync; a new member is removed even then."""
    member_id = member.member_id
    if not member.is_new and (member_id in group.join_tickets or member_id in group.sync_tickets):
        member.heartbeat_at = None
        return
    step.info(f"Member {member_id} in group {group.group_id} has failed, removing it from the group")
    remove_member(step, group, member_id, f"removing member {member_id} on heartbeat expiration")


# --- the rebalance


def maybe_prepare_rebalance(step: GroupStep, group: Group, reason: str) -> None:
    """Start a rebalance unless one is in its join phase or the group is dead."""
    if group.can_rebalance:
        prepare_rebalance(step, group, reason)


def prepare_rebalance(step: GroupStep, group: Group, reason: str) -> None:
    """Enter PreparingRebalance: members must rejoin before the timer ends; `reason` is logged."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        fail_assignment(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    group.sync_deadline = None
    if group.state is GroupState.EMPTY:
        delay_ms = step.config.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        timer = RebalanceTimer(step.after(delay_ms), True, delay_ms, remaining_ms)
    else:
        timer = RebalanceTimer(step.after(group.rebalance_timeout_ms))
    group.transition_to(GroupState.PREPARING_REBALANCE, step.now.wall_ms)
    step.info(
        f"Preparing to rebalance group {group.group_id} in state {group.state.value} with old generation "
        f"{group.generation_id} (reason: {reason})"
    )
    _set_rebalance_timer(step, group, timer)
    maybe_complete_join(step, group)


def _set_rebalance_timer(step: GroupStep, group: Group, timer: RebalanceTimer) -> None:
    group.rebalance_timer = timer
    step.timers.rebalance(group, timer.deadline)


def maybe_complete_join(step: GroupStep, group: Group) -> None:
    """Complete the join phase early if no member is missing; an initial delay always runs its full time."""
    timer = group.rebalance_timer
    if timer is not None and not timer.is_initial and group.all_members_joined:
        _complete_join(step, group)


def on_rebalance_expired(step: GroupStep, group: Group) -> None:
    """The rebalance timer has ended: prolong the initial delay (KIP-134), or complete the join phase."""
    timer = group.rebalance_timer
    assert timer is not None
    if timer.is_initial and group.new_member_added and timer.remaining_ms != 0:
        group.new_member_added = False
        delay_ms = min(step.config.group_initial_rebalance_delay_ms, timer.remaining_ms)
        remaining_ms = max(timer.remaining_ms - timer.delay_ms, 0)
        _set_rebalance_timer(step, group, RebalanceTimer(step.after(delay_ms), True, delay_ms, remaining_ms))
    else:
        _complete_join(step, group)


def _complete_join(step: GroupStep, group: Group) -> None:
    missing = [
        member_id
        for member_id, member in group.members.items()
        if member_id not in group.join_tickets and member.group_instance_id is None
    ]
    if missing:
        step.info(f"Group {group.group_id} removed dynamic members who haven't joined: {missing}")
    for member_id in missing:
        group.remove(member_id)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none rejoined: wait until they rejoin or their sessions end.
        timer = RebalanceTimer(step.after(max(group.rebalance_timeout_ms, RETRY_DELAY_MIN_MS)))
        step.warn(f"Group {group.group_id} could not complete rebalance because no members rejoined")
        _set_rebalance_timer(step, group, timer)
        return
    group.next_generation(step.now.wall_ms)
    if group.state is GroupState.EMPTY:
        _store_empty(step, group)
    else:
        _send_generation(step, group)


def _store_empty(step: GroupStep, group: Group) -> None:
    step.info(f"Group {group.group_id} with generation {group.generation_id} is now empty")
    record = GroupRecord(group.group_id, group.to_stored({}))
    step.write([record], partial(_on_empty_stored, group.group_id))


def _on_empty_stored(group_id: str, step: GroupStep, error: ErrorCode) -> None:
    # If the broker fails before the next rebalance, the former generation is loaded again and times out.
    if error is not ErrorCode.NONE:
        step.warn(f"Failed to write empty metadata for group {group_id}: {error.name}")


def _send_generation(step: GroupStep, group: Group) -> None:
    step.info(f"Stabilized group {group.group_id} generation {group.generation_id} with {len(group.members)} members")
    for member_id, member in group.members.items():
        respond_to_join(step, group, member_id, joined(group, member_id, with_members=member_id == group.leader_id))
        restart_session(step, group, member)
        member.is_new = False
        group.pending_sync.add(member_id)
    step.timers.sync(group, step.after(group.rebalance_timeout_ms))


def member_has_synced(group: Group, member_id: str) -> None:
    """The member's SyncGroup has arrived; after the last one, the sync deadline is cleared."""
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        group.sync_deadline = None


def on_sync_expired(step: GroupStep, group: Group) -> None:
    """Remove the members that did not send SyncGroup in time, and rebalance."""
    missing = [member_id for member_id in group.members if member_id in group.pending_sync]
    assert missing
    for member_id in missing:
        # A static member may still wait in the join that replaced its last instance.
        respond_to_join(step, group, member_id, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
        group.remove(member_id)
    prepare_rebalance(step, group, f"Removing {missing} on pending sync request expiration")


# --- leaving


def remove_member(step: GroupStep, group: Group, member_id: str, reason: str) -> None:
    """Remove a member and fail its waiting requests with UNKNOWN_MEMBER_ID, so that a live client rejoins."""
    respond_to_join(step, group, member_id, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID))
    respond_to_sync(step, group, member_id, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
    group.remove(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step, group)
    elif group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        prepare_rebalance(step, group, reason)


def remove_pending_member(step: GroupStep, group: Group, member_id: str) -> None:
    """Forget a member id that was given out (KIP-394) and not used; that may complete the join phase."""
    group.remove(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(step, group)
