"""ConsumerGroupHeartbeat: a member joins, reports, and is given the next part of its assignment.

Three steps (GroupMetadataManager.consumerGroupHeartbeat, 4.3.1): the member and the group's epoch; the target
assignment, if it is behind; the member's way towards it. Each adds records; all of them are one batch, in the order
that Kafka writes and can load. Nothing changes before they are in the log, but the member's session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.leaving import CLASSES, leave, start_rebalance_timer, static_or_raise
from kpybroker.core.consumer_group.members import Member, MemberMetadata, is_subset, without_epochs
from kpybroker.core.consumer_group.patterns import PatternChange, change_pattern, maybe_resolve
from kpybroker.core.consumer_group.reconciliation import Goal, reconcile
from kpybroker.core.consumer_group.records import (
    ConsumerRecord,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataRecord,
    TargetRecord,
)
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.target import (
    Computation,
    ComputeTarget,
    computation,
    first_slice,
    may_compute,
    target_records,
)
from kpybroker.core.consumer_group.values import ConsumerHeartbeat, ConsumerHeartbeatResult
from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.leaving import member_tombstones
from kpybroker.core.modern_group.members import LEAVE_GROUP_STATIC_EPOCH
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.core.modern_group.requests import (
    Heartbeats,
    fenced_epoch,
    member_or_raise,
    respond,
    settle_member,
    too_large,
)
from kpybroker.wire.errors import ErrorCode, KafkaError


@dataclass(slots=True)
class Draft:
    """A heartbeat on its way: the member before and after it, the group's epoch after it, and what is to be written."""

    group: ConsumerGroup
    request: ConsumerHeartbeat
    before: Member
    after: Member
    records: list[ConsumerRecord] = field(default_factory=list)
    epoch: int = 0
    has_subscription_changed: bool = False


def _heartbeat(
    step: Step[Any], group: ConsumerGroup, request: ConsumerHeartbeat, ticket: Ticket, first: Sequence[object]
) -> None:
    draft = _admit(step, group, request)
    update_member(step, draft)
    advance(step, draft)
    write_draft(step, draft, partial(respond, ticket, _response(draft)), first=first)


def advance(step: Step[Any], draft: Draft) -> None:
    """The target, if it is behind, and the next part of the member's way to it."""
    target, target_epoch = _update_target(step, draft)
    reconcile_draft(draft, target, target_epoch)


def write_draft(
    step: Step[Any],
    draft: Draft,
    respond: Callable[[Step[Any], ErrorCode], None],
    *,
    first: Sequence[object] = (),
    last: Sequence[object] = (),
) -> None:
    """Start the member's timers and write what there is to write, as one batch; then `respond`."""
    group, member = draft.group, draft.after
    live = group.live_member(member.member_id, draft.request.owner)
    group.start_session(live, step.now.monotonic, member.metadata.session_timeout_ms)
    if member.current != draft.before.current:
        start_rebalance_timer(group, live, member, step.now.monotonic)
    if draft.records or last:
        step.write([*first, *draft.records, *last], partial(_on_written, draft, respond))
    else:
        step.read(group.written_up_to, respond)


def _on_written(
    draft: Draft, respond: Callable[[Step[Any], ErrorCode], None], step: Step[Any], error: ErrorCode
) -> None:
    group, member_id = draft.group, draft.after.member_id
    settle_member(group, member_id)
    if member_id in group.members and member_id not in group.live and not group.is_released:
        # A static member that came back with the same id: what was live of it went with its former self.
        live = group.live_member(member_id, draft.request.owner)
        group.start_session(live, step.now.monotonic, draft.after.metadata.session_timeout_ms)
        group.charge_member(member_id)
    if isinstance(group.computing, Computation) and group.computing.epoch > group.epoch:
        group.computing = None  # its epoch did not get into the log
    respond(step, error)


heartbeat: Final = Heartbeats(ConsumerHeartbeatResult, leave, _heartbeat).handle


# --- who it is


def _admit(step: Step[Any], group: ConsumerGroup, request: ConsumerHeartbeat) -> Draft:
    """The member that the heartbeat is of, known or new. Raises what it is refused with."""
    check_size(group, request.member_id)
    member_id = request.member_id or request.new_member_id
    if request.member_epoch == 0:
        return join_draft(step, group, request, member_id)
    if request.instance_id is None:
        member = member_or_raise(group, member_id)
    else:
        member = static_or_raise(group, member_id, request.instance_id)
    _check_epoch(member, request)
    return Draft(group, request, member, member)


def check_size(group: ConsumerGroup, member_id: str) -> None:
    """Raises GROUP_MAX_SIZE_REACHED where there is no place for one more member."""
    max_size = group.shared.surroundings.limits.max_size
    if len(group.members) >= max_size and member_id not in group.members:
        raise too_large("consumer", max_size)


def join_draft(step: Step[Any], group: ConsumerGroup, request: ConsumerHeartbeat, member_id: str) -> Draft:
    """A member that joins, in either protocol; a static one takes the place of the one before it.

    Raises UNRELEASED_INSTANCE_ID if that is still there, and both use the new protocol.
    """
    where, instance_id = f"[GroupId {group.group_id}]", request.instance_id
    protocol = "consumer" if request.classic is None else "classic"
    if instance_id is None:
        step.info(f"{where} Member {member_id} joins the consumer group using the {protocol} protocol.")
        member = group.members.get(member_id) or Member(member_id)
        return Draft(group, request, member, member)
    former = group.static_member(instance_id)
    if former is None:
        step.info(
            f"{where} Static member {member_id} with instance id {instance_id} joins the consumer group "
            f"using the {protocol} protocol."
        )
        member = group.members.get(member_id) or Member(member_id)
        return Draft(group, request, member, member)
    both_are_new = request.classic is None and former.metadata.classic is None
    if both_are_new and former.current.member_epoch != LEAVE_GROUP_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {former.member_id} member.",
        )
    step.info(
        f"{where} Static member with instance id {instance_id} re-joins the consumer group using the {protocol} "
        f"protocol. Created a new member {member_id} to replace the existing member {former.member_id}."
    )
    current = replace(former.current, member_epoch=0, previous_member_epoch=0)
    member = Member(member_id, former.metadata, current)
    records = [
        *member_tombstones(CLASSES, group.group_id, [former.member_id]),
        MemberRecord(group.group_id, member_id, member.metadata),
        TargetRecord(group.group_id, member_id, group.targets.get(former.member_id, {})),
        CurrentRecord(group.group_id, member_id, current),
    ]
    return Draft(group, request, member, member, records)


def _check_epoch(member: Member, request: ConsumerHeartbeat) -> None:
    """The member's epoch, or the one before if the response with it was lost. Raises FENCED_MEMBER_EPOCH."""
    received, current = request.member_epoch, member.current
    if received == current.member_epoch:
        return
    is_lost = received == current.previous_member_epoch and is_subset(request.owned, current.assigned)
    if received > current.member_epoch or not is_lost:
        raise fenced_epoch("consumer", received, current.member_epoch)


# --- the member and the group's epoch


def update_member(step: Step[Any], draft: Draft) -> None:
    """What the member says of itself now, and the group's next epoch if that changes what it subscribes to.

    Raises INVALID_REGULAR_EXPRESSION.
    """
    group, before, after = draft.group, draft.before.metadata, _updated(draft.before.metadata, draft.request)
    group_id = group.group_id
    if after != before:
        draft.after = replace(draft.before, metadata=after)
        draft.records.append(MemberRecord(group_id, draft.after.member_id, after))
    change, records = change_pattern(group, before, after)
    draft.records += records
    maybe_resolve(step, group, draft.request, before, after)
    names_changed = after.topic_names != before.topic_names
    draft.has_subscription_changed = names_changed or change is not PatternChange.NONE
    draft.epoch = group.epoch
    bumps = names_changed or change is PatternChange.RESOLVED
    checked = group.metadata_checked_epoch
    if bumps or checked is None or group.epoch < checked:
        _update_epoch(step, draft, bumps=bumps)


def _updated(metadata: MemberMetadata, request: ConsumerHeartbeat) -> MemberMetadata:
    """What the member says of itself now. None is "as before", but for its client, which is always said."""
    if (
        metadata.client_id == request.client_id
        and metadata.client_host == request.client_host
        and request.instance_id is None
        and request.topic_names is None
        and request.pattern is None
        and request.rebalance_timeout_ms == -1
        and request.rack_id is None
        and request.server_assignor is None
        and metadata.classic is None
    ):
        return metadata
    timeout_ms = request.rebalance_timeout_ms
    return MemberMetadata(
        instance_id=metadata.instance_id if request.instance_id is None else request.instance_id,
        rack_id=metadata.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=metadata.topic_names if request.topic_names is None else request.topic_names,
        pattern=metadata.pattern if request.pattern is None else request.pattern,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=metadata.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=request.classic,
    )


def _update_epoch(step: Step[Any], draft: Draft, *, bumps: bool) -> None:
    """The next epoch, if the subscription changed, or the topics did that the group subscribes to."""
    group = draft.group
    topics = group.subscribed_topics([draft.before.metadata], draft.after.metadata)
    metadata_hash = group.shared.metadata_hash(topics)
    if bumps or metadata_hash != group.metadata_hash:
        draft.epoch = group.next_epoch
        draft.records.append(GroupEpochRecord(group.group_id, GroupEpoch(draft.epoch, metadata_hash)))
        group.shared.counts.consumer_rebalances += 1
        step.info(f"[GroupId {group.group_id}] Bumped group epoch to {draft.epoch} with metadata hash {metadata_hash}.")
    group.metadata_checked_epoch = draft.epoch
    if group.has_partition_metadata:
        draft.records.append(PartitionMetadataRecord(group.group_id, None))


# --- the target


def _update_target(step: Step[Any], draft: Draft) -> tuple[Partitions, int]:
    """The member's part of the target assignment, and the epoch of that; a new one if it is time."""
    group, member = draft.group, draft.after
    if may_compute(group, draft.epoch, step.now.wall_ms):
        work = computation(group, draft.epoch, draft.before.metadata, member)
        assignment = first_slice(work)
        if assignment is not None:
            epoch = TargetEpoch(draft.epoch, step.now.wall_ms)
            draft.records += target_records(group.group_id, assignment, group.targets, epoch)
            step.info(
                f"[GroupId {group.group_id}] Computed a new target assignment for epoch {draft.epoch} "
                f"with '{work.assignor}' assignor."
            )
            return assignment.get(member.member_id, {}), draft.epoch
        _compute_outside(step, group, work)
    return group.target_of(member.member_id, member.metadata.instance_id), group.target_epoch.epoch


def _compute_outside(step: Step[Any], group: ConsumerGroup, work: Computation) -> None:
    group.computing = work
    step.outcome.effects.append(ComputeTarget(group.group_id, work))


# --- the way there


def reconcile_draft(draft: Draft, target: Partitions, target_epoch: int) -> None:
    """The next part of the member's way to its target. Raises FENCED_MEMBER_EPOCH."""
    group, member, current = draft.group, draft.after, draft.after.current
    if not draft.has_subscription_changed and current.is_reconciled_to(target_epoch):
        return
    subscribed = group.shared.topic_ids(group.topic_names_of(member.metadata))
    updated = reconcile(
        current,
        Goal(target_epoch, target, subscribed),
        group.is_free,
        draft.request.owned,
        has_subscription_changed=draft.has_subscription_changed,
    )
    if updated != current:
        draft.after = replace(member, current=updated)
        draft.records.append(CurrentRecord(group.group_id, member.member_id, updated))


def _response(draft: Draft) -> ConsumerHeartbeatResult:
    """With the assignment if the member joins, said all there is to say, or got or lost partitions."""
    group, request, current = draft.group, draft.request, draft.after.current
    shows = request.member_epoch == 0 or request.is_full or current.assigned != draft.before.current.assigned
    return ConsumerHeartbeatResult(
        error=ErrorCode.NONE,
        member_id=draft.after.member_id,
        member_epoch=current.member_epoch,
        heartbeat_interval_ms=group.config.heartbeat_interval_ms,
        assignment=without_epochs(current.assigned) if shows else None,
    )
