"""JoinGroup, SyncGroup and Heartbeat of classic members in a consumer group.

The coordinator assigns, and there is no join phase: each JoinGroup is as a first heartbeat of the new protocol, and has
its response at once, with the member's epoch as the generation and no leader. SyncGroup returns what the member may use
now; a Heartbeat says that there is more to give up or to get: then the member has to rejoin, and after that to sync, in
time.
"""

from __future__ import annotations

from functools import partial

from kpybroker.core.budget import UNOWNED
from kpybroker.core.consumer_group.heartbeat import (
    Draft,
    advance,
    check_size,
    join_draft,
    reconcile_draft,
    update_member,
    write_draft,
)
from kpybroker.core.consumer_group.leaving import static_or_raise
from kpybroker.core.consumer_group.members import ClassicMetadata, Member, MemberState
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, MigrationPolicy
from kpybroker.core.group.migration.downgrade import downgrade_with, may_downgrade
from kpybroker.core.group.migration.embedded import encode_assignment, parse_subscription
from kpybroker.core.group.records import Record
from kpybroker.core.group.step import GroupStep
from kpybroker.core.group.values import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    Heartbeat,
    Join,
    JoinResult,
    Sync,
    SyncResult,
)
from kpybroker.core.machine import Ticket
from kpybroker.core.modern_group.requests import member_or_raise, write_error
from kpybroker.core.modern_group.timers import TimerKind
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError

# --- JoinGroup


def join(step: GroupStep, group: ConsumerGroup, request: Join, ticket: Ticket) -> None:
    """A classic member joins or rejoins a consumer group that has members."""
    try:
        _check_join(group, request)
        if not request.member_id and request.require_known_member_id:
            step.info(
                f"[GroupId {group.group_id}] Dynamic member with unknown member id joins the consumer group. Created a "
                f"new member id {request.new_member_id} and requesting the member to rejoin with this id."
            )
            step.reply(ticket, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, request.new_member_id))
            return
        _join(step, group, request, ticket)
    except KafkaError as error:
        step.reply(ticket, JoinResult(error.code, UNKNOWN_MEMBER_ID))


def _check_join(group: ConsumerGroup, request: Join) -> None:
    if group.shared.surroundings.limits.migration_policy is MigrationPolicy.DISABLED:
        text = f"Cannot join the consumer group {group.group_id} with the classic protocol"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{text} because the group migration is disabled.")
    check_size(group, request.member_id)
    counts, size = group.classic_protocols, group.classic_count
    is_supported = any(counts[name] == size for name, _ in request.protocols)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not is_supported:
        member_id = request.member_id or request.new_member_id
        text = f"Member {member_id}'s protocols are not supported."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


def _join(step: GroupStep, group: ConsumerGroup, request: Join, ticket: Ticket) -> None:
    instance_id = request.group_instance_id
    former = None if instance_id is None else group.static_member(instance_id)
    draft = _draft(step, group, request)
    update_member(step, draft)
    last = None if former is None else _maybe_downgrade(step, draft, former)
    if last is None:
        advance(step, draft)
    result = JoinResult(
        error=ErrorCode.NONE,
        member_id=draft.after.member_id,
        generation_id=draft.after.current.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0][0],
    )
    write_draft(step, draft, partial(_on_joined, draft, result, ticket), last=last or ())


def _draft(step: GroupStep, group: ConsumerGroup, request: Join) -> Draft:
    """Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID; UNKNOWN_SERVER_ERROR where the subscription is none."""
    instance_id, member_id = request.group_instance_id, request.member_id or request.new_member_id
    is_known = bool(request.member_id) and instance_id is not None
    known = static_or_raise(group, member_id, instance_id) if is_known and instance_id is not None else None
    try:
        said = parse_subscription(request.protocols[0][1], group.shared.topics)
    except ProtocolError as error:
        text = "Malformed embedded consumer protocol in subscription deserialization."
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    heartbeat = ConsumerHeartbeat(
        group_id=group.group_id,
        member_id=member_id,
        member_epoch=0,
        instance_id=instance_id,
        rack_id=said.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=said.topic_names,
        pattern="",
        owned=said.owned,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
        rights=request.rights,
        owner=request.owner,
    )
    if known is not None:
        return Draft(group, heartbeat, known, known)
    return join_draft(step, group, heartbeat, member_id)


def _maybe_downgrade(step: GroupStep, draft: Draft, former: Member) -> list[Record] | None:
    """What makes the group a classic one, if the member replaces the last one of the new protocol."""
    group = draft.group
    others = [member for member in group.members.values() if member is not former]
    if former.metadata.classic is not None or not may_downgrade(step, group, others, len(group.members)):
        return None
    epoch = group.target_epoch.epoch
    if epoch >= draft.epoch:
        target = group.target_of(draft.after.member_id, draft.after.metadata.instance_id)
        reconcile_draft(draft, target, epoch)
    group.live_member(draft.after.member_id, draft.request.owner)
    return downgrade_with(step, group, former, draft.after, draft.epoch)


def _on_joined(draft: Draft, result: JoinResult, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    if error is not ErrorCode.NONE:
        step.reply(ticket, JoinResult(write_error(error), UNKNOWN_MEMBER_ID))
        return
    group, member = draft.group, draft.after
    live = group.live.get(member.member_id)
    if live is not None:  # else it has gone since, or the group is a classic one
        timers, now = group.shared.timers, step.now.monotonic
        timers.stop(TimerKind.JOIN, live)
        group.start_session(live, now, member.metadata.session_timeout_ms)
        timers.start(TimerKind.SYNC, live, now + member.metadata.rebalance_timeout_ms / 1000)
    step.reply(ticket, result)


# --- SyncGroup


def sync(step: GroupStep, group: ConsumerGroup, request: Sync, ticket: Ticket) -> None:
    """A classic member asks for what it may use."""
    try:
        member = _member(group, request)
        _check_protocol(member, request)
        is_behind = group.target_epoch.epoch > member.current.member_epoch
        if is_behind and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            _expect_join(step, group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"Member {member.member_id} should rejoin to catch up.")
    except KafkaError as error:
        step.reply(ticket, SyncResult(error.code))
        return
    data = encode_assignment(member.current.assigned, group.shared.topics, _protocol(member)[1])
    result = SyncResult(ErrorCode.NONE, request.protocol_type, request.protocol_name, data)
    step.read(group.written_up_to, partial(_on_synced, group, member, result, ticket))


def _check_protocol(member: Member, request: Sync) -> None:
    name = _protocol(member)[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        text = f"The protocol in the request of member {member.member_id} is not that of its join response."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


def _on_synced(
    group: ConsumerGroup, member: Member, result: SyncResult, ticket: Ticket, step: GroupStep, error: ErrorCode
) -> None:
    if error is not ErrorCode.NONE:
        step.reply(ticket, SyncResult(write_error(error)))
        return
    live = group.live.get(member.member_id)
    if live is not None:
        group.shared.timers.stop(TimerKind.SYNC, live)
        group.start_session(live, step.now.monotonic, member.metadata.session_timeout_ms)
    step.reply(ticket, result)


# --- Heartbeat


def heartbeat(step: GroupStep, group: ConsumerGroup, request: Heartbeat, ticket: Ticket) -> None:
    """A classic member is alive. REBALANCE_IN_PROGRESS asks it to rejoin: there is more to give up, or to get."""
    try:
        member = _member(group, request)
    except KafkaError as error:
        step.reply(ticket, error.code)
        return
    live = group.live_member(member.member_id, UNOWNED)
    group.start_session(live, step.now.monotonic, member.metadata.session_timeout_ms)
    result = ErrorCode.NONE
    if _must_rejoin(group, member):
        result = ErrorCode.REBALANCE_IN_PROGRESS
        _expect_join(step, group, member)
    step.read(group.written_up_to, partial(_on_committed, result, ticket))


def _must_rejoin(group: ConsumerGroup, member: Member) -> bool:
    current = member.current
    match current.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not _waits(group, member):
            return True
    return current.member_epoch < group.target_epoch.epoch


def _waits(group: ConsumerGroup, member: Member) -> bool:
    """Whether another member still has a partition of this one's target."""
    return any(
        partition not in member.current.assigned.get(topic_id, ()) and not group.is_free(topic_id, partition)
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _on_committed(result: ErrorCode, ticket: Ticket, step: GroupStep, error: ErrorCode) -> None:
    step.reply(ticket, result if error is ErrorCode.NONE else write_error(error))


# --- of all of them


def _member(group: ConsumerGroup, request: Sync | Heartbeat) -> Member:
    """Raises UNKNOWN_MEMBER_ID, also for a member of the new protocol; FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    if request.group_instance_id is None:
        member = member_or_raise(group, request.member_id)
    else:
        member = static_or_raise(group, request.member_id, request.group_instance_id)
    if member.metadata.classic is None:
        text = f"Member {member.member_id} does not use the classic protocol."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)
    if request.generation_id != member.current.member_epoch:
        text = f"The generation {request.generation_id} is not the epoch of member {member.member_id}."
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, text)
    return member


def _protocol(member: Member) -> tuple[str, bytes]:
    """The one of the join response."""
    classic = member.metadata.classic
    return classic.protocols[0] if classic is not None and classic.protocols else ("", b"")


def _expect_join(step: GroupStep, group: ConsumerGroup, member: Member) -> None:
    live = group.live_member(member.member_id, UNOWNED)
    deadline = step.now.monotonic + member.metadata.rebalance_timeout_ms / 1000
    group.shared.timers.start_if_stopped(TimerKind.JOIN, live, deadline)
