"""The target assignment of a streams group: when it may be computed, and of what (Kafka's TargetAssignmentBuilder).

As of a consumer group (`core.consumer_group.target`), a computation that does not end in its first slice goes on
outside of the heartbeat that began it: at most one for a group. `ComputeTasks` is the effect, its result comes back as
an event, and until then heartbeats follow the last target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from kpybroker.core.assignors.values import Slices
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.streams_group.members import NO_TASKS, StreamsMember
from kpybroker.core.streams_group.records import StreamsRecord, StreamsTargetEpochRecord, StreamsTargetRecord
from kpybroker.core.streams_group.state import StreamsGroup
from kpybroker.core.streams_group.sticky_assignor import STICKY_ASSIGNOR, Targets, TaskMember, assign_tasks
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology
from kpybroker.wire.errors import ErrorCode

Configs = tuple[tuple[str, str], ...]

SPECS_PER_SLICE: Final = 2_000
"""So many members are prepared for the assignor in a slice."""
TARGETS_AT_ONCE: Final = 1_000
"""So many members' targets are one batch of the log, which has a largest size; and are written in one slice."""


@dataclass(frozen=True, slots=True, eq=False)
class TasksComputation:
    """The tasks of all members for a group epoch, on their way."""

    epoch: int
    slices: Slices[Targets]


@dataclass(frozen=True, slots=True)
class ComputeTasks:
    """An effect: run `slices` to their end, others in between, then call `done` with the result as one of a write."""

    group_id: str
    slices: Slices[Targets]
    done: Callable[[Targets, Step[Any], ErrorCode], None]


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
) -> Targets | None:
    """The tasks of all members, `new` among them; no member has any if the topology is not ready. None where that takes
    more than a slice: then it goes on outside.
    """
    members = dict(group.members) if new is None else {**group.members, new.member_id: new}
    standby = int(dict(configs).get("num.standby.replicas", "0"))
    work = TasksComputation(epoch, _slices(members, dict(group.targets), configured, standby))
    try:
        next(work.slices)
    except StopIteration as end:
        targets: Targets = end.value
        return targets
    _compute_outside(step, group, work)
    return None


def _slices(
    members: dict[str, StreamsMember], targets: Targets, configured: ConfiguredTopology, standby: int
) -> Slices[Targets]:
    """The arguments are copies, so that nothing of them changes between slices."""
    specs: dict[str, TaskMember] = {}
    for member_id, member in members.items():
        specs[member_id] = TaskMember(member.metadata.process_id, targets.get(member_id, NO_TASKS))
        if not len(specs) % SPECS_PER_SLICE:
            yield
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(specs, NO_TASKS)
    return (yield from assign_tasks(specs, configured.subtopologies, standby))


def _compute_outside(step: Step[Any], group: StreamsGroup, work: TasksComputation) -> None:
    group.computing = work
    step.outcome.effects.append(ComputeTasks(group.group_id, work.slices, partial(_on_computed, group, work)))


def target_records(step: Step[Any], group: StreamsGroup, epoch: int, targets: Targets) -> list[StreamsRecord]:
    """What is new in these targets, and their epoch."""
    step.info(
        f"[GroupId {group.group_id}] Computed a new target assignment for epoch {epoch} "
        f"with '{STICKY_ASSIGNOR}' assignor."
    )
    records: list[StreamsRecord] = [
        StreamsTargetRecord(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    return [*records, StreamsTargetEpochRecord(group.group_id, TargetEpoch(epoch, step.now.wall_ms))]


# --- a computation that has ended outside of a heartbeat


def _on_computed(
    group: StreamsGroup, work: TasksComputation, targets: Targets, step: Step[Any], error: ErrorCode
) -> None:
    """Write it, a long one in parts; what a member got that is gone, goes to no one. The epoch is in the last part:
    until then the target is that of the epoch before, and no task goes to a member before it is free.
    """
    if group.computing is not work:
        return
    new = _new_targets(group, targets)
    part = dict(islice(new, TARGETS_AT_ONCE))
    rest = dict(new)
    if rest:
        goes_on = group.computing = replace(work, slices=_result(rest))
        records = [StreamsTargetRecord(group.group_id, member_id, target) for member_id, target in part.items()]
        step.write(records, partial(_on_part_written, group, goes_on))
        return
    group.computing = None
    step.write(target_records(step, group, work.epoch, part), partial(_on_written, group.group_id))


def _new_targets(group: StreamsGroup, targets: Targets) -> Iterator[tuple[str, Any]]:
    return (
        (member_id, target)
        for member_id, target in targets.items()
        if member_id in group.members and group.targets.get(member_id) != target
    )


def _result(targets: Targets) -> Slices[Targets]:
    """One slice, in which there is nothing left to compute."""
    yield
    return targets


def _on_part_written(group: StreamsGroup, goes_on: TasksComputation, step: Step[Any], error: ErrorCode) -> None:
    if group.computing is not goes_on:
        return
    if error is ErrorCode.NONE:
        _compute_outside(step, group, goes_on)
    else:
        group.computing = None
        _on_written(group.group_id, step, error)


def on_initial_delay_ended(step: Step[Any], group: StreamsGroup) -> None:
    """The first assignment of a group, for all members that have joined by now."""
    configured = group.configured
    if group.is_empty or configured is None or group.epoch <= group.target_epoch.epoch or group.computing is not None:
        return
    if wait_reason(group, step.now.wall_ms) is not None:
        return
    targets = new_target(step, group, group.epoch, configured, group.assignment_configs)
    if targets is not None:
        step.write(target_records(step, group, group.epoch, targets), partial(_on_written, group.group_id))


def _on_written(group_id: str, step: Step[Any], error: ErrorCode) -> None:
    """A target that did not get into the log is computed again by the next heartbeat."""
    if error is not ErrorCode.NONE:
        step.warn(f"[GroupId {group_id}] Could not write the target assignment: {error.name}")
