"""The target assignment of a share group: when it may be computed, and of what (Kafka's TargetAssignmentBuilder).

As of a consumer group (`core.consumer_group.target`), a computation that does not end in its first slice goes on
outside of the heartbeat that began it: at most one for a group. Its result is one batch: a share group is small.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kpybroker.core.assignors.simple_assignor import SIMPLE_ASSIGNOR, Assignable, assign_simply
from kpybroker.core.assignors.values import Assignment, Partitions
from kpybroker.core.assignors.values import Member as Spec
from kpybroker.core.consumer_group.target import Computation, is_new
from kpybroker.core.machine import Step
from kpybroker.core.modern_group.records import TargetEpoch
from kpybroker.core.modern_group.values import Topics
from kpybroker.core.share_group.members import ShareMember
from kpybroker.core.share_group.records import ShareRecord, ShareTargetEpochRecord, ShareTargetRecord
from kpybroker.core.share_group.state import ShareGroup
from kpybroker.wire.errors import ErrorCode

SPECS_PER_SLICE: Final = 2_000
"""So many topics that members name are looked up in a slice."""


def may_compute(group: ShareGroup, epoch: int, now_ms: int) -> bool:
    """Whether the target is behind the group's epoch, and the time between assignments has passed (KIP-1263)."""
    target = group.target_epoch
    if target.epoch >= epoch or group.computing is not None:
        return False
    return target.may_follow(group.config.assignment_interval_ms, now_ms)


def computation(group: ShareGroup, epoch: int, new: ShareMember) -> Computation:
    """A computation for the group as it will be with `new`."""
    members = {**group.members, new.member_id: new}
    initialized = {} if group.states is None else group.states.initialized
    assignable = {topic_id: topic.partitions for topic_id, topic in initialized.items()}
    work = _Work(members, dict(group.targets), group.shared.topics, assignable)
    return Computation(epoch, SIMPLE_ASSIGNOR, {}, work.slices())


@dataclass(frozen=True, slots=True)
class _Work:
    """What a computation is of; copies, so that nothing of it changes between slices."""

    members: Mapping[str, ShareMember]
    owned: Mapping[str, Partitions]
    topics: Topics
    assignable: Assignable

    def slices(self) -> Generator[None, None, Assignment]:
        ids: dict[frozenset[str], frozenset[bytes]] = {}
        specs: dict[str, Spec] = {}
        looked_up = 0
        for member_id, member in self.members.items():
            names = member.metadata.topic_names
            if names not in ids:
                topics = [topic for topic in map(self.topics.by_name, names) if topic is not None]
                ids[names] = frozenset(topic.topic_id for topic in topics)
                looked_up += len(names)
            specs[member_id] = Spec(None, ids[names], self.owned.get(member_id, {}))
            if looked_up >= SPECS_PER_SLICE:
                looked_up = 0
                yield
        return (yield from assign_simply(specs, self.assignable))


def target_records(group: ShareGroup, assignment: Assignment, epoch: TargetEpoch) -> list[ShareRecord]:
    """One record for each member whose target is not the known one, then that of the epoch."""
    records: list[ShareRecord] = [
        ShareTargetRecord(group.group_id, member_id, target)
        for member_id, target in assignment.items()
        if is_new(group.targets.get(member_id), target)
    ]
    return [*records, ShareTargetEpochRecord(group.group_id, epoch)]


def on_target_computed(step: Step[Any], group: ShareGroup, computation: Computation, assignment: Assignment) -> None:
    """A computation has ended that began in a heartbeat; the next heartbeat of each member follows its result."""
    if group.computing is not computation:
        return
    group.computing = None
    step.info(log_text(group, computation.epoch))
    present = {member_id: target for member_id, target in assignment.items() if member_id in group.members}
    epoch = TargetEpoch(computation.epoch, step.now.wall_ms)
    step.write(target_records(group, present, epoch), partial(_on_written, group.group_id))


def log_text(group: ShareGroup, epoch: int) -> str:
    """That there is a new target."""
    return (
        f"[GroupId {group.group_id}] Computed a new target assignment for epoch {epoch} "
        f"with '{SIMPLE_ASSIGNOR}' assignor."
    )


def _on_written(group_id: str, step: Step[Any], error: ErrorCode) -> None:
    """A target that did not get into the log is computed again by a later heartbeat."""
    if error is not ErrorCode.NONE:
        step.warn(f"[GroupId {group_id}] Could not write the target assignment: {error.name}")
