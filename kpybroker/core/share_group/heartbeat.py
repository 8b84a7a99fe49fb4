"""ShareGroupHeartbeat: a member joins, reports, and is given its assignment.

Four steps (GroupMetadataManager.shareGroupHeartbeat, 4.3.1): the member and the group's epoch; the target assignment,
if it is behind; the member's assignment; partitions whose state must be initialized. Each adds records; all of them are
one batch, in the order that Kafka writes and can load. Nothing changes before they are in the log, but the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.values import Partitions
from kpybroker.core.consumer_group.target import ComputeTarget, first_slice
from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.records import GroupEpoch, TargetEpoch
from kpybroker.core.modern_group.requests import (
    Heartbeats,
    fenced_epoch,
    member_or_raise,
    respond,
    settle_member,
    too_large,
)
from kpybroker.core.share_group.initializing import begin, order, uninitialized
from kpybroker.core.share_group.leaving import leave
from kpybroker.core.share_group.members import ShareAssignment, ShareMember, ShareMemberMetadata
from kpybroker.core.share_group.records import (
    ShareCurrentRecord,
    ShareGroupEpochRecord,
    ShareMemberRecord,
    ShareRecord,
    TopicStates,
)
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.core.share_group.target import computation, log_text, may_compute, target_records
from kpybroker.core.share_group.values import ShareHeartbeat, ShareHeartbeatResult
from kpybroker.wire.errors import ErrorCode


@dataclass(slots=True)
class _Draft:
    """A heartbeat on its way: the member before and after it, the group's epoch after it, and what is to be written."""

    group: ShareGroup
    request: ShareHeartbeat
    before: ShareMember
    after: ShareMember
    topic_names: frozenset[str] = frozenset()
    records: list[ShareRecord] = field(default_factory=list)
    epoch: int = 0
    bumps: bool = False


def _heartbeat(
    step: Step[Any], group: ShareGroup, request: ShareHeartbeat, ticket: Ticket, first: Sequence[object]
) -> None:
    draft = _admit(step, group, request)
    _update_member(step, draft)
    _assign(draft, *_update_target(step, draft))
    live = group.live_member(request.member_id, request.owner)
    group.start_session(live, step.now.monotonic)
    found = uninitialized(group, draft.topic_names, step.now.monotonic)
    if found:
        draft.records.append(begin(group, found))
    group.now = step.now.monotonic
    if draft.records:
        step.write([*first, *draft.records], partial(_on_written, draft, found, ticket))
    else:
        step.read(group.written_up_to, partial(respond, ticket, _response(draft)))


def _on_written(draft: _Draft, found: TopicStates, ticket: Ticket, step: Step[Any], error: ErrorCode) -> None:
    group = draft.group
    settle_member(group, draft.after.member_id)
    if getattr(group.computing, "epoch", 0) > group.epoch:
        group.computing = None  # its epoch did not get into the log
    if found and error is ErrorCode.NONE and not group.is_released:
        order(step, group, draft.epoch, found)
    respond(ticket, _response(draft), step, error)


heartbeat: Final = Heartbeats(ShareHeartbeatResult, leave, _heartbeat).handle


# --- who it is


def _admit(step: Step[Any], group: ShareGroup, request: ShareHeartbeat) -> _Draft:
    """The member that the heartbeat is of, known or new. Raises what it is refused with."""
    member_id, max_size = request.member_id, group.settings.limits.max_size
    if len(group.members) >= max_size and member_id not in group.members:
        raise too_large("share", max_size)
    if request.member_epoch == 0:
        step.info(f"[GroupId {group.group_id}] Member {member_id} joins the share group using the share protocol.")
        member = group.members.get(member_id) or ShareMember(member_id)
    else:
        member = member_or_raise(group, member_id)
        _check_epoch(member, request.member_epoch)
    return _Draft(group, request, member, member)


def _check_epoch(member: ShareMember, received: int) -> None:
    """The member's epoch, or the one before if the response with it was lost. Raises FENCED_MEMBER_EPOCH."""
    current = member.current
    if received in (current.member_epoch, current.previous_member_epoch) and received <= current.member_epoch:
        return
    previous = ""
    if received < current.member_epoch:
        previous = f", and it does not match the previous member epoch ({current.previous_member_epoch})"
    raise fenced_epoch("share", received, current.member_epoch, previous)


# --- the member and the group's epoch


def _update_member(step: Step[Any], draft: _Draft) -> None:
    """What the member says of itself now, and the group's next epoch if that or the topics changed."""
    group, before, after = draft.group, draft.before.metadata, _updated(draft.before.metadata, draft.request)
    if after != before:
        draft.after = replace(draft.before, metadata=after)
        draft.records.append(ShareMemberRecord(group.group_id, draft.after.member_id, after))
    draft.topic_names = group.subscribed_topics([before], after)
    draft.epoch = group.epoch
    draft.bumps = after.topic_names != before.topic_names
    if group.target_epoch.epoch >= group.epoch and group.members and group.has_unassigned():
        draft.bumps = True
    checked = group.metadata_checked_epoch
    if draft.bumps or checked is None or group.epoch < checked:
        _update_epoch(step, draft)


def _updated(metadata: ShareMemberMetadata, request: ShareHeartbeat) -> ShareMemberMetadata:
    """What the member says of itself now. None is "as before", but for its client, which is always said."""
    return ShareMemberMetadata(
        rack_id=metadata.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=metadata.topic_names if request.topic_names is None else request.topic_names,
    )


def _update_epoch(step: Step[Any], draft: _Draft) -> None:
    group = draft.group
    metadata_hash = group.shared.metadata_hash(draft.topic_names)
    draft.bumps |= metadata_hash != group.metadata_hash
    if draft.bumps:
        draft.epoch = group.next_epoch
        draft.records.append(ShareGroupEpochRecord(group.group_id, GroupEpoch(draft.epoch, metadata_hash)))
        group.shared.counts.share_rebalances += 1
        step.info(f"[GroupId {group.group_id}] Bumped group epoch to {draft.epoch} with metadata hash {metadata_hash}.")
    group.metadata_checked_epoch = draft.epoch


# --- the target, and the member's part of it


def _update_target(step: Step[Any], draft: _Draft) -> tuple[Partitions, int]:
    """The member's part of the target assignment, and the epoch of that; a new one if it is time."""
    group, member = draft.group, draft.after
    if may_compute(group, draft.epoch, step.now.wall_ms):
        work = computation(group, draft.epoch, member)
        assignment = first_slice(work)
        if assignment is not None:
            draft.records += target_records(group, assignment, TargetEpoch(draft.epoch, step.now.wall_ms))
            step.info(log_text(group, draft.epoch))
            return assignment.get(member.member_id, {}), draft.epoch
        group.computing = work
        step.outcome.effects.append(ComputeTarget(group.group_id, work))
    return group.targets.get(member.member_id, {}), group.target_epoch.epoch


def _assign(draft: _Draft, target: Partitions, target_epoch: int) -> None:
    """A member has all of its target at once: nothing has to be revoked by others."""
    group, member, current = draft.group, draft.after, draft.after.current
    is_behind = target_epoch != current.member_epoch
    if not is_behind and not draft.bumps:
        return
    subscribed = group.shared.topic_ids(member.metadata.topic_names)
    assigned = {topic_id: partitions for topic_id, partitions in target.items() if topic_id in subscribed}
    previous = current.member_epoch if is_behind else current.previous_member_epoch
    updated = ShareAssignment(target_epoch, previous, assigned)
    if updated != current:
        draft.after = replace(member, current=updated)
        draft.records.append(ShareCurrentRecord(group.group_id, member.member_id, updated))


def _response(draft: _Draft) -> ShareHeartbeatResult:
    """With the assignment if the member joins, said what it subscribes to, or got or lost partitions."""
    request, current = draft.request, draft.after.current
    is_full = request.member_epoch == 0 or request.topic_names is not None
    shows = is_full or current.assigned != draft.before.current.assigned
    return ShareHeartbeatResult(
        error=ErrorCode.NONE,
        member_id=draft.after.member_id,
        member_epoch=current.member_epoch,
        heartbeat_interval_ms=draft.group.config.heartbeat_interval_ms,
        assignment=current.assigned if shows else None,
    )
