"""The target assignment of a streams group: when it may be computed, and of what (Kafka's TargetAssignmentBuilder)."""

from __future__ import annotations

from functools import partial
from typing import Any

from kpybroker.core.assignors.values import run_to_end
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.streams_group.members import NO_TASKS, StreamsMember
from kpybroker.core.streams_group.records import StreamsRecord, StreamsTargetEpochRecord, StreamsTargetRecord
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.sticky_assignor import STICKY_ASSIGNOR, Targets, TaskMember, assign_tasks
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology
from kpybroker.wire.errors import ErrorCode

Configs = tuple[tuple[str, str], ...]


def delay_text(why: str) -> str:
    """What members hear while there is no new target."""
    return f"Assignment delayed due to the configured {why}."


def wait_reason(group: StreamsGroup, now_ms: int) -> str | None:
    """Why there may be no new target yet: the time between assignments (KIP-1263) has not passed."""
    may_compute = group.target_epoch.may_follow(group.config.assignment_interval_ms, now_ms)
    return None if may_compute else delay_text("assignment interval")


def new_target(
    step: Step[Any],
    group: StreamsGroup,
    epoch: int,
    configured: ConfiguredTopology,
    configs: Configs,
    new: StreamsMember | None = None,
) -> tuple[Targets, list[StreamsRecord]]:
    """The tasks of all members, `new` among them, and the records of what is new of that. None has any if the topology
    is not ready.
    """
    members = dict(group.members) if new is None else {**group.members, new.member_id: new}
    specs = {
        member_id: TaskMember(member.metadata.process_id, group.target_of(member_id))
        for member_id, member in members.items()
    }
    if configured.is_ready and configured.subtopologies is not None:
        standby = int(dict(configs).get("num.standby.replicas", "0"))
        targets = run_to_end(assign_tasks(specs, configured.subtopologies, standby))
    else:
        targets = dict.fromkeys(specs, NO_TASKS)
    step.info(
        f"[GroupId {group.group_id}] Computed a new target assignment for epoch {epoch} "
        f"with '{STICKY_ASSIGNOR}' assignor."
    )
    records: list[StreamsRecord] = [
        StreamsTargetRecord(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    return targets, [*records, StreamsTargetEpochRecord(group.group_id, TargetEpoch(epoch, step.now.wall_ms))]


def on_initial_delay_ended(step: Step[Any], group: StreamsGroup) -> None:
    """The first assignment of a group, for all members that have joined by now."""
    configured = group.configured
    if group.is_empty or configured is None or group.epoch <= group.target_epoch.epoch:
        return
    if wait_reason(group, step.now.wall_ms) is not None:
        return
    _, records = new_target(step, group, group.epoch, configured, group.assignment_configs)
    step.write(records, partial(_on_written, group.group_id))


def _on_written(group_id: str, step: Step[Any], error: ErrorCode) -> None:
    """A target that did not get into the log is computed again by the next heartbeat."""
    if error is not ErrorCode.NONE:
        step.warn(f"[GroupId {group_id}] Could not write the target assignment: {error.name}")
