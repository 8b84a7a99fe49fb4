"""A member of a streams group: what it said of itself, and the tasks it has. Each has a record of its own.

A task is a partition of a subtopology: the index of the partitions that it reads of all its source topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from kpybroker.core.modern_group.members import LEAVE_GROUP_EPOCH, ModernMember

SubtopologyId = str
TaskIds = Mapping[SubtopologyId, frozenset[int]]
"""Tasks by subtopology. One without tasks is left out."""
TaskEpochs = Mapping[SubtopologyId, Mapping[int, int]]
"""For each active task the epoch in which the member got it, by subtopology."""


class MemberState(IntEnum):
    """How far a member has come towards the target assignment; the numbers are in its record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It must give up tasks before it may enter the next epoch."""
    UNRELEASED_TASKS = 3
    """It is in the latest epoch, and waits for tasks that others still have."""
    UNKNOWN = 127
    """A state of a later Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMemberMetadata:
    """What a member said of itself. `client_tags` are sorted pairs of key and value."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of the three kinds: those that a target assignment has, or that a member reports."""

    active: TaskIds = field(default_factory=dict)
    standby: TaskIds = field(default_factory=dict)
    warmup: TaskIds = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are none, of any kind."""
        return not (self.active or self.standby or self.warmup)


@dataclass(frozen=True, slots=True)
class HeldTasks:
    """Tasks that a member has, or must give up; an active one with the epoch in which it got it."""

    active: TaskEpochs = field(default_factory=dict)
    standby: TaskIds = field(default_factory=dict)
    warmup: TaskIds = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are none, of any kind."""
        return not (self.active or self.standby or self.warmup)

    def epoch_of(self, subtopology_id: SubtopologyId, task: int) -> int | None:
        """The epoch in which the member got an active task; None if it has it not."""
        return self.active.get(subtopology_id, {}).get(task)


NO_TASKS: Final = Tasks()
NOTHING_HELD: Final = HeldTasks()


@dataclass(frozen=True, slots=True)
class CurrentTasks:
    """The epoch of a member, the tasks it may run in it, and those it must give up."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: HeldTasks = NOTHING_HELD
    pending_revocation: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all of the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


NEW_METADATA: Final = StreamsMemberMetadata()
NEW_ASSIGNMENT: Final = CurrentTasks()
GONE: Final = CurrentTasks(LEAVE_GROUP_EPOCH, LEAVE_GROUP_EPOCH)
"""In place of an assignment that has a tombstone."""


@dataclass(frozen=True, slots=True)
class StreamsMember(ModernMember[StreamsMemberMetadata, CurrentTasks]):
    """A member: its id, and its two parts."""

    metadata: StreamsMemberMetadata = NEW_METADATA
    current: CurrentTasks = NEW_ASSIGNMENT


def has_any(reported: Tasks, held: HeldTasks) -> bool:
    """Whether a member reports some of these tasks, as tasks of the same kind."""
    kinds = (
        (reported.active, held.active),
        (reported.standby, held.standby),
        (reported.warmup, held.warmup),
    )
    return any(
        not tasks.isdisjoint(of_held.get(subtopology_id, ()))
        for of_reported, of_held in kinds
        for subtopology_id, tasks in of_reported.items()
    )


def is_within(reported: Tasks | None, held: HeldTasks) -> bool:
    """Whether a member reports nothing that it has not; False where it did not say what it has."""
    if reported is None:
        return False
    kinds = (
        (reported.active, held.active),
        (reported.standby, held.standby),
        (reported.warmup, held.warmup),
    )
    return all(
        subtopology_id in of_held and tasks.issubset(of_held[subtopology_id])
        for of_reported, of_held in kinds
        for subtopology_id, tasks in of_reported.items()
    )
