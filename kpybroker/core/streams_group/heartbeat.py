"""StreamsGroupHeartbeat: a member joins, reports, and is given the next part of its tasks.

Four steps (GroupMetadataManager.streamsGroupHeartbeat, 4.3.1): the member and the topology; the topology with the
topics of now, and the group's epoch; the target assignment, if it is behind; the member's way towards it. Each adds
records; all of them are one batch, in the order that Kafka writes and can load. Nothing durable changes before they are
in the log.

The first members of an empty group wait for the others: until `initial.rebalance.delay.ms` has passed, they have no
tasks, and the group no new target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kpybroker.core.machine import Step, Ticket
from kpybroker.core.modern_group.requests import (
    Heartbeats,
    fenced_epoch,
    member_or_raise,
    respond,
    settle_member,
    too_large,
)
from kpybroker.core.modern_group.timers import TimerKind
from kpybroker.core.streams_group.endpoints import endpoint_partitions
from kpybroker.core.streams_group.leaving import leave, request_shutdown, start_rebalance_timer
from kpybroker.core.streams_group.members import (
    NO_TASKS,
    StreamsMember,
    StreamsMemberMetadata,
    TaskEpochs,
    TaskIds,
    Tasks,
    is_within,
)
from kpybroker.core.streams_group.reconciliation import Goal, reconcile
from kpybroker.core.streams_group.records import (
    NO_TOPOLOGY_EPOCH,
    StreamsCurrentRecord,
    StreamsGroupEpoch,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.target import TasksComputation, delay_text, new_target, target_records, wait_reason
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology, Status, StatusCode, configure
from kpybroker.core.streams_group.topics.topology import Topology
from kpybroker.core.streams_group.values import StreamsHeartbeat, StreamsHeartbeatResult
from kpybroker.wire.errors import ErrorCode, KafkaError


@dataclass(slots=True)
class _Draft:
    """A heartbeat on its way: the member before and after it, the group after it, and what is to be written."""

    group: StreamsGroup
    request: StreamsHeartbeat
    before: StreamsMember
    after: StreamsMember
    topology: Topology
    configured: ConfiguredTopology
    records: list[Any] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    epoch: int = 0


def _heartbeat(
    step: Step[Any], group: StreamsGroup, request: StreamsHeartbeat, ticket: Ticket, first: Sequence[object]
) -> None:
    draft = _admit(step, group, request)
    _update_epoch(step, draft)
    _reconcile(draft, *_update_target(step, draft))
    live = group.live_member(request.member_id, request.owner)
    group.start_session(live, step.now.monotonic)
    if draft.after.current != draft.before.current:
        start_rebalance_timer(group, live, draft.after, step.now.monotonic)
    if request.shutdown_application:
        request_shutdown(step, group, request.member_id)
    result = _response(draft)
    if draft.records:
        step.write([*first, *draft.records], partial(_on_written, draft, ticket, result))
    else:
        step.read(group.written_up_to, partial(respond, ticket, result))


def _on_written(
    draft: _Draft, ticket: Ticket, result: StreamsHeartbeatResult, step: Step[Any], error: ErrorCode
) -> None:
    group = draft.group
    settle_member(group, draft.after.member_id)
    if error is not ErrorCode.NONE:
        group.configured = group.metadata_checked_epoch = None
    if isinstance(group.computing, TasksComputation) and group.computing.epoch > group.epoch:
        group.computing = None  # its epoch did not get into the log
    respond(ticket, result, step, error)


heartbeat: Final = Heartbeats(StreamsHeartbeatResult, leave, _heartbeat, {"statuses": ()}).handle


# --- who it is, and of what


def _admit(step: Step[Any], group: StreamsGroup, request: StreamsHeartbeat) -> _Draft:
    """The member that the heartbeat is of, known or new, and the topology. Raises what it is refused with."""
    member_id, where = request.member_id, f"[GroupId {group.group_id}][MemberId {request.member_id}]"
    if request.member_epoch == 0:
        max_size = group.settings.max_size
        if len(group.members) >= max_size:
            raise too_large("streams", max_size)
        step.info(f"{where} Member joins the streams group.")
        member = group.members.get(member_id) or StreamsMember(member_id)
    else:
        member = member_or_raise(group, member_id)
        _check_epoch(member, request)
    records: list[Any] = []
    after = replace(member, metadata=_updated(member.metadata, request))
    if after.metadata != member.metadata:
        records.append(StreamsMemberRecord(group.group_id, member_id, after.metadata))
    topology = _topology(group, request)
    if group.topology is None:
        step.info(f"{where} Member initialized the topology with epoch {topology.epoch}")
        records.append(TopologyRecord(group.group_id, topology))
    draft = _Draft(group, request, member, after, topology, _configured(step, group, topology), records)
    if after.metadata.topology_epoch < topology.epoch:
        detail = (
            f"The member's topology epoch {after.metadata.topology_epoch} is behind the group's topology epoch "
            f"{topology.epoch}."
        )
        draft.statuses.append(Status(StatusCode.STALE_TOPOLOGY, detail))
    return draft


def _check_epoch(member: StreamsMember, request: StreamsHeartbeat) -> None:
    """The member's epoch, or the one before if the response with it was lost. Raises FENCED_MEMBER_EPOCH."""
    received, current = request.member_epoch, member.current
    if received == current.member_epoch:
        return
    is_lost = received == current.previous_member_epoch and is_within(request.owned, current.assigned)
    if received > current.member_epoch or not is_lost:
        raise fenced_epoch("streams", received, current.member_epoch)


def _updated(metadata: StreamsMemberMetadata, request: StreamsHeartbeat) -> StreamsMemberMetadata:
    """What the member says of itself now. None is "as before", but for its client, which is always said."""
    timeout_ms = request.rebalance_timeout_ms
    return StreamsMemberMetadata(
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=metadata.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=metadata.process_id if request.process_id is None else request.process_id,
        endpoint=metadata.endpoint if request.endpoint is None else request.endpoint,
        client_tags=metadata.client_tags if request.client_tags is None else request.client_tags,
    )


def _topology(group: StreamsGroup, request: StreamsHeartbeat) -> Topology:
    """The group's topology, or its first one. Raises INVALID_REQUEST for another of the same or a later epoch."""
    known, sent = group.topology, request.topology
    if known is None:
        if sent is None or sent.epoch < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka; a group in the log has a topology
        return sent
    if sent is not None and sent.epoch >= known.epoch and sent != known:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


# --- the topology with the topics of now, and the group's epoch


def _configured(step: Step[Any], group: StreamsGroup, topology: Topology) -> ConfiguredTopology:
    """Found again when topics of it have changed. Raises STREAMS_INVALID_TOPOLOGY."""
    if group.configured is not None and _is_checked(group):
        return group.configured
    is_changed = group.shared.metadata_hash(topology.required_topics) != group.metadata_hash
    if group.configured is not None and not is_changed:
        return group.configured
    configured = configure(topology, group.shared.topics)
    if configured.problem is None:
        text = f"Valid topic configuration found, topology epoch {topology.epoch} is now initialized."
    else:
        text = f"Topic configuration of topology epoch {topology.epoch}: {configured.problem.detail}"
    step.info(f"[GroupId {group.group_id}] {text}")
    return configured


def _is_checked(group: StreamsGroup) -> bool:
    """Whether no topic has changed since the group's epoch was written."""
    checked = group.metadata_checked_epoch
    return checked is not None and group.epoch >= checked


def _update_epoch(step: Step[Any], draft: _Draft) -> None:
    """The next epoch, if the member, the topics, or the settings of the assignor changed. Raises INVALID_REQUEST."""
    group, configured = draft.group, draft.configured
    validated = NO_TOPOLOGY_EPOCH
    if configured.is_ready:
        validated = draft.topology.epoch
        _require_tasks(draft)
    metadata_hash = group.metadata_hash
    if not _is_checked(group):
        metadata_hash = group.shared.metadata_hash(draft.topology.required_topics)
    draft.epoch, configs = group.epoch, group.config.assignment_configs
    group.configured = configured
    if (
        draft.after.metadata != draft.before.metadata
        or metadata_hash != group.metadata_hash
        or validated != group.validated_topology_epoch
        or configs != group.assignment_configs
    ):
        draft.epoch = group.next_epoch
        value = StreamsGroupEpoch(draft.epoch, metadata_hash, validated, configs)
        draft.records.append(StreamsGroupEpochRecord(group.group_id, value))
        group.shared.counts.streams_rebalances += 1
        step.info(
            f"[GroupId {group.group_id}][MemberId {draft.after.member_id}] Bumped streams group epoch to {draft.epoch} "
            f"with metadata hash {metadata_hash} and validated topic epoch {validated}."
        )
    group.metadata_checked_epoch = draft.epoch


def _require_tasks(draft: _Draft) -> None:
    """What the member reports must be tasks of the topology. Raises INVALID_REQUEST."""
    request, subtopologies = draft.request, draft.configured.subtopologies or {}
    for kind in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for subtopology_id, tasks in (kind or {}).items():
            if subtopology_id not in subtopologies:
                text = f"Subtopology {subtopology_id} does not exist in the topology."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            count = subtopologies[subtopology_id].task_count
            if tasks and not 0 <= min(tasks) <= max(tasks) < count:
                wrong = min(task for task in tasks if not 0 <= task < count)
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {wrong} for subtopology {subtopology_id} is invalid. "
                    f"Number of tasks for this subtopology: {count}",
                )


# --- the target, and the way there


def _update_target(step: Step[Any], draft: _Draft) -> tuple[Tasks, int]:
    """The member's part of the target assignment, and the epoch of that; a new one if it is time."""
    group, member = draft.group, draft.after
    delay_ms = group.config.initial_rebalance_delay_ms
    if group.is_empty and delay_ms > 0:
        deadline = step.now.monotonic + delay_ms / 1000
        group.shared.timers.start_if_stopped(TimerKind.JOIN, group.initial, deadline)
    if group.is_delayed:
        draft.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, delay_text("initial rebalance delay")))
        return NO_TASKS, group.target_epoch.epoch
    if group.target_epoch.epoch < draft.epoch and group.computing is None:
        reason = wait_reason(group, step.now.wall_ms)
        if reason is None:
            configs = group.config.assignment_configs
            targets = new_target(step, group, draft.epoch, draft.configured, configs, member)
            if targets is not None:
                draft.records += target_records(step, group, draft.epoch, targets)
                return targets.get(member.member_id, NO_TASKS), draft.epoch
        else:
            draft.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, reason))
    return group.target_of(member.member_id), group.target_epoch.epoch


def _reconcile(draft: _Draft, target: Tasks, target_epoch: int) -> None:
    """The next part of the member's way to its target. Raises FENCED_MEMBER_EPOCH."""
    group, member, current = draft.group, draft.after, draft.after.current
    if current.is_reconciled_to(target_epoch):
        return
    goal = Goal(target_epoch, target, member.metadata.process_id)
    updated = reconcile(current, goal, group, draft.request.owned)
    if updated != current:
        draft.after = replace(member, current=updated)
        draft.records.append(StreamsCurrentRecord(group.group_id, member.member_id, updated))


# --- the response


def _response(draft: _Draft) -> StreamsHeartbeatResult:
    """With the tasks if the member joins, or got or lost some; with endpoints if it does not know the latest."""
    group, request, member = draft.group, draft.request, draft.after
    shows = request.member_epoch == 0 or member.current.assigned != draft.before.current.assigned
    if shows and member.metadata.endpoint is not None:
        group.endpoint_epoch += 1
    statuses, configured = draft.statuses, draft.configured
    if configured.problem is not None:
        statuses.append(configured.problem)
    if group.shutdown_member_id is not None:
        detail = (
            f"Streams group member {group.shutdown_member_id} encountered a fatal error and requested a shutdown for "
            "the entire application."
        )
        statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
    knows_endpoints = request.endpoint_epoch == group.endpoint_epoch
    return StreamsHeartbeatResult(
        error=ErrorCode.NONE,
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=group.config.heartbeat_interval_ms,
        statuses=tuple(statuses),
        tasks=_shown(member) if shows else None,
        endpoint_epoch=group.endpoint_epoch if group.written_up_to > 0 else 0,
        endpoints=None if knows_endpoints else endpoint_partitions(group, member),
        to_create=configured.to_create,
    )


def _shown(member: StreamsMember) -> Tasks:
    assigned = member.current.assigned
    return Tasks(_without_epochs(assigned.active), assigned.standby, assigned.warmup)


def _without_epochs(active: TaskEpochs) -> TaskIds:
    return {subtopology_id: frozenset(epochs) for subtopology_id, epochs in active.items()}
