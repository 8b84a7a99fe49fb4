"""From the tasks that a member has towards its target: one step, as a pure function (Kafka's CurrentAssignmentBuilder).

    STABLE ---------> UNREVOKED_TASKS    it has what is not in its target: it stays in its epoch, and gives that up
      ^  ^                  |            first. It has done so when it no longer reports those tasks.
      |  +------------------+
      +--> UNRELEASED_TASKS              it is in the epoch of the target, and gets each task that others still have
                                         when they have released it.

So an active task runs in one place at a time, and a process never has two copies of one task, of whatever kind: they
would share a state directory. Members of one process are one here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from kpybroker.core.streams_group.members import (
    NOTHING_HELD,
    CurrentTasks,
    HeldTasks,
    MemberState,
    SubtopologyId,
    TaskEpochs,
    TaskIds,
    Tasks,
    has_any,
)
from kpybroker.wire.errors import ErrorCode, KafkaError

_FreeOf = Callable[[SubtopologyId, frozenset[int]], frozenset[int]]


class Holders(Protocol):
    """Who has tasks now, to run or to give up."""

    def active_tasks(self, subtopology_id: SubtopologyId) -> Collection[int]:
        """The active tasks that members have."""

    def copies(self, process_id: str, subtopology_id: SubtopologyId) -> Collection[int]:
        """The tasks of any kind that members of the process have."""

    def spares(self, process_id: str, subtopology_id: SubtopologyId) -> Collection[int]:
        """The standby and warm-up tasks that members of the process have."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Where a member is to go: the epoch of the target assignment, and the member's part of it."""

    epoch: int
    target: Tasks
    process_id: str


def reconcile(current: CurrentTasks, goal: Goal, holders: Holders, owned: Tasks | None) -> CurrentTasks:
    """The member's next assignment, or the same one. `owned` is what it reported; None where it did not.

    Raises FENCED_MEMBER_EPOCH for a member in an unknown state that may have tasks.
    """
    match current.state:
        case MemberState.STABLE:
            if current.member_epoch == goal.epoch:
                return current
            return _next(current, current.member_epoch, goal, holders, owned)
        case MemberState.UNREVOKED_TASKS:
            if owned is None or has_any(owned, current.pending_revocation):
                return current
            return _next(current, current.member_epoch + 1, goal, holders, owned)
        case MemberState.UNRELEASED_TASKS:
            return _next(current, current.member_epoch, goal, holders, owned)
        case MemberState.UNKNOWN:
            if owned is None or not owned.is_empty:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
                )
            return _next(current, goal.epoch, goal, holders, owned)


def _next(current: CurrentTasks, epoch: int, goal: Goal, holders: Holders, owned: Tasks | None) -> CurrentTasks:
    """Towards the target; `epoch` is the one that the member stays in while it must give up tasks."""
    process_id, has, target = goal.process_id, current.assigned, goal.target

    def free_for_active(subtopology_id: SubtopologyId, tasks: frozenset[int]) -> frozenset[int]:
        return tasks.difference(holders.active_tasks(subtopology_id), holders.spares(process_id, subtopology_id))

    def free_for_spare(subtopology_id: SubtopologyId, tasks: frozenset[int]) -> frozenset[int]:
        return tasks.difference(holders.copies(process_id, subtopology_id))

    active = _difference(_indexes(has.active), target.active, free_for_active)
    standby = _difference(has.standby, target.standby, free_for_spare)
    warmup = _difference(has.warmup, target.warmup, free_for_spare)
    revoked = HeldTasks(_with_epochs(active.revoked, has), standby.revoked, warmup.revoked)
    kept = _with_epochs(active.kept, has)
    if not revoked.is_empty and (owned is None or has_any(owned, revoked)):
        assigned = HeldTasks(kept, standby.kept, warmup.kept)
        return CurrentTasks(epoch, current.member_epoch, MemberState.UNREVOKED_TASKS, assigned, revoked)
    for subtopology_id, tasks in active.added.items():
        kept.setdefault(subtopology_id, {}).update(dict.fromkeys(sorted(tasks), goal.epoch))
    assigned = HeldTasks(kept, _merged(standby.kept, standby.added), _merged(warmup.kept, warmup.added))
    waits = active.waits or standby.waits or warmup.waits
    state = MemberState.UNRELEASED_TASKS if waits else MemberState.STABLE
    return CurrentTasks(goal.epoch, current.member_epoch, state, assigned, NOTHING_HELD)


@dataclass(frozen=True, slots=True)
class _Difference:
    """Of one kind of tasks: those that stay, those to give up, those to get now; and whether there are more to get."""

    kept: TaskIds
    revoked: TaskIds
    added: TaskIds
    waits: bool


def _difference(has: TaskIds, target: TaskIds, free_of: _FreeOf) -> _Difference:
    kept: dict[SubtopologyId, frozenset[int]] = {}
    revoked: dict[SubtopologyId, frozenset[int]] = {}
    added: dict[SubtopologyId, frozenset[int]] = {}
    waits = False
    for subtopology_id in {**target, **has}:
        wanted, held = target.get(subtopology_id, frozenset()), has.get(subtopology_id, frozenset())
        missing = wanted - held
        free = free_of(subtopology_id, missing)
        _put(kept, subtopology_id, held & wanted)
        _put(revoked, subtopology_id, held - wanted)
        _put(added, subtopology_id, free)
        waits = waits or free != missing
    return _Difference(kept, revoked, added, waits)


def _put(into: dict[SubtopologyId, frozenset[int]], subtopology_id: SubtopologyId, tasks: frozenset[int]) -> None:
    if tasks:
        into[subtopology_id] = tasks


def _indexes(active: TaskEpochs) -> TaskIds:
    return {subtopology_id: frozenset(epochs) for subtopology_id, epochs in active.items()}


def _with_epochs(tasks: TaskIds, has: HeldTasks) -> dict[SubtopologyId, dict[int, int]]:
    return {
        subtopology_id: {task: has.active[subtopology_id][task] for task in sorted(indexes)}
        for subtopology_id, indexes in tasks.items()
    }


def _merged(kept: TaskIds, added: TaskIds) -> TaskIds:
    return {
        subtopology_id: kept.get(subtopology_id, frozenset()) | added.get(subtopology_id, frozenset())
        for subtopology_id in {**kept, **added}
    }
