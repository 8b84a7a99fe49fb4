"""The target assignment of a group: when it may be computed, and what it becomes (Kafka's TargetAssignmentBuilder).

An assignor yields between slices of its work. A computation that ends in its first slice is part of the heartbeat that
needed it, as in Kafka. A longer one goes on outside: `ComputeTarget` is the effect, its result comes back as an event,
and until then heartbeats follow the last target. At most one runs for a group; what has changed since it began counts
in the next one, because the group's epoch is higher by then.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.values import Assignment, Assignor, Partitions, Slices
from kpybroker.core.assignors.values import Member as Spec
from kpybroker.core.consumer_group.members import Member, MemberMetadata
from kpybroker.core.consumer_group.records import ConsumerRecord, TargetEpochRecord, TargetRecord
from kpybroker.core.consumer_group.state import ConsumerGroup
from kpybroker.core.consumer_group.values import ResolvedPattern
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.modern_group.values import Topics
from kpybroker.wire.errors import ErrorCode, KafkaError

SPECS_PER_SLICE: Final = 2_000
"""So many members are prepared for the assignor in a slice."""
TARGETS_AT_ONCE: Final = 1_000
"""So many members' targets are one batch of the log, which has a largest size; and are written in one slice."""


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """A target assignment for a group epoch on its way. `static` has the instance ids of its members."""

    epoch: int
    assignor: str
    static: Mapping[str, str]
    slices: Slices[Assignment]


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """An effect: run `computation.slices` to its end, others in between; the result goes to `on_target_computed`."""

    group_id: str
    computation: Computation


def may_compute(group: ConsumerGroup, epoch: int, now_ms: int) -> bool:
    """Whether the target is behind the group's epoch, and the time between assignments has passed (KIP-1263)."""
    target = group.target_epoch
    if target.epoch >= epoch or group.computing is not None:
        return False
    return target.may_follow(group.config.assignment_interval_ms, now_ms)


def computation(group: ConsumerGroup, epoch: int, before: MemberMetadata, new: Member) -> Computation:
    """A computation for the group as it will be with `new`, which said `before` until now.

    A member of another id that has the instance id of `new` is replaced by it. Raises UNKNOWN_SERVER_ERROR without an
    assignor.
    """
    members = dict(group.members)
    owned = dict(group.targets)
    instance_id = new.metadata.instance_id
    replaced = None if instance_id is None else group.static_members.get(instance_id)
    if replaced is not None and replaced != new.member_id:
        members.pop(replaced, None)
        owned[new.member_id] = owned.pop(replaced, {})
    members[new.member_id] = new
    name = group.preferred_assignor(before, new.metadata)
    assignor = group.shared.surroundings.assignors.get(name)
    if assignor is None:
        text = f"Failed to compute a new target assignment for epoch {epoch}: there is no assignor"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    static = {
        member_id: member.metadata.instance_id
        for member_id, member in members.items()
        if member.metadata.instance_id is not None
    }
    work = _Work(members, owned, dict(group.patterns), group.shared.topics, assignor)
    return Computation(epoch, name, static, work.slices())


@dataclass(frozen=True, slots=True)
class _Work:
    """What a computation is of; copies, so that nothing of it changes between slices."""

    members: Mapping[str, Member]
    owned: Mapping[str, Partitions]
    patterns: Mapping[str, ResolvedPattern]
    topics: Topics
    assignor: Assignor

    def slices(self) -> Generator[None, None, Assignment]:
        ids: dict[frozenset[str], frozenset[bytes]] = {}
        counts: dict[bytes, int] = {}
        specs: dict[str, Spec] = {}
        for member_id, member in self.members.items():
            metadata = member.metadata
            resolved = self.patterns.get(metadata.pattern or "")
            names = metadata.topic_names if resolved is None else metadata.topic_names | resolved.topic_names
            if names not in ids:
                topics = [topic for topic in map(self.topics.by_name, names) if topic is not None]
                counts |= {topic.topic_id: topic.partition_count for topic in topics}
                ids[names] = frozenset(topic.topic_id for topic in topics)
            specs[member_id] = Spec(metadata.instance_id, ids[names], self.owned.get(member_id, {}))
            if not len(specs) % SPECS_PER_SLICE:
                yield
        return (yield from self.assignor(specs, counts))


def first_slice(computation: Computation) -> Assignment | None:
    """Begin; the result if that was all."""
    try:
        next(computation.slices)
    except StopIteration as end:
        result: Assignment = end.value
        return result
    return None


def target_records(
    group_id: str, assignment: Assignment, known: Mapping[str, Partitions], epoch: TargetEpoch
) -> list[ConsumerRecord]:
    """One record for each member whose target is not the known one, then that of the epoch."""
    records: list[ConsumerRecord] = [
        TargetRecord(group_id, member_id, target)
        for member_id, target in assignment.items()
        if is_new(known.get(member_id), target)
    ]
    return [*records, TargetEpochRecord(group_id, epoch)]


def is_new(known: Partitions | None, target: Partitions) -> bool:
    """Whether a target is not the known one. One that is as before is, from most assignors, the very same object."""
    return known is not target and known != target


def on_target_computed(step: Step[Any], group: ConsumerGroup, computation: Computation, assignment: Assignment) -> None:
    """A computation has ended that began in a heartbeat; the next heartbeat of each member follows its result.

    What a static member got goes to the one that has its instance id now; what a member that is gone got, to no one. A
    long result is written in parts, each as the result of a computation of what is left. The epoch is in the last one:
    until then the target is that of the epoch before, and no partition goes to a member before it is free.
    """
    if group.computing is not computation:
        return
    group_id = group.group_id
    part, rest = _first_part(group, computation, assignment)
    if rest:
        goes_on = group.computing = replace(computation, slices=_result(rest))
        records = [TargetRecord(group_id, member_id, target) for member_id, target in part.items()]
        step.write(records, partial(_on_part_written, group, goes_on))
        return
    group.computing = None
    step.info(
        f"[GroupId {group_id}] Computed a new target assignment for epoch {computation.epoch} "
        f"with '{computation.assignor}' assignor."
    )
    epoch = TargetEpoch(computation.epoch, step.now.wall_ms)
    step.write(target_records(group_id, part, group.targets, epoch), partial(_on_written, group_id))


def _first_part(
    group: ConsumerGroup, computation: Computation, assignment: Assignment
) -> tuple[Assignment, Assignment]:
    """The first targets that are new, by the ids that members have now; and what has not been looked at."""
    part: Assignment = {}
    rest: Assignment = {}
    for member_id, target in assignment.items():
        if len(part) == TARGETS_AT_ONCE:
            rest[member_id] = target
            continue
        now_id = group.static_members.get(computation.static.get(member_id, ""), member_id)
        if now_id in group.members and is_new(group.targets.get(now_id), target):
            part[now_id] = target
    return part, rest


def _result(assignment: Assignment) -> Slices[Assignment]:
    """One slice, in which there is nothing left to compute."""
    yield
    return assignment


def _on_part_written(group: ConsumerGroup, goes_on: Computation, step: Step[Any], error: ErrorCode) -> None:
    if group.computing is not goes_on:
        return
    if error is ErrorCode.NONE:
        step.outcome.effects.append(ComputeTarget(group.group_id, goes_on))
    else:
        group.computing = None
        _on_written(group.group_id, step, error)


def _on_written(group_id: str, step: Step[Any], error: ErrorCode) -> None:
    """A target that did not get into the log is computed again by a later heartbeat."""
    if error is not ErrorCode.NONE:
        step.warn(f"[GroupId {group_id}] Could not write the target assignment: {error.name}")
