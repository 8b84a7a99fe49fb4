"""The sticky task assignor: tasks stay where they are, as long as no member has more than its share.

As Kafka's StickyTaskAssignor, 4.3.1. Active tasks go first: to the member that had them, else to one that had a standby
of them, else to the process with the least load. Then each stateful task gets its standby tasks in the same way, never
two copies in one process. Racks and client tags are stored, but no assignor of Kafka 4.3 looks at them.

The load of a process is its tasks by its members (threads). A share is the smallest number with which all tasks are
given; once a member has it, it is computed again for what is left.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from kpybroker.core.assignors.values import MemberId, Slices
from kpybroker.core.streams_group.members import NO_TASKS, SubtopologyId, TaskIds, Tasks
from kpybroker.core.streams_group.topics.configuring import ConfiguredSubtopology

STICKY_ASSIGNOR: Final = "sticky"
TASKS_PER_SLICE: Final = 500
"""So many tasks are given in a slice."""
PLAIN_PER_TASK: Final = 4
"""To look at so many tasks takes as long as to give one."""

TaskId = tuple[SubtopologyId, int]
_Given = dict[SubtopologyId, list[int]]
Targets = dict[MemberId, Tasks]
"""For every member, also for one that gets nothing."""


@dataclass(frozen=True, slots=True)
class TaskMember:
    """A member as the assignor sees it. `previous` is its part of the previous target assignment."""

    process_id: str
    previous: Tasks = NO_TASKS


def assign_tasks(
    members: Mapping[MemberId, TaskMember],
    subtopologies: Mapping[SubtopologyId, ConfiguredSubtopology],
    standby_replicas: int,
) -> Slices[Targets]:
    """The tasks of each member. The same arguments give the same result."""
    if not members:
        return {}
    work = _Work(members, subtopologies, standby_replicas)
    yield from work.prepare(members)
    yield from work.assign_active()
    if standby_replicas > 0:
        yield from work.assign_standby()
    return (yield from work.targets())


@dataclass(slots=True)
class _Quota:
    """How many tasks a member may have, so that all are given: less, once some have more than what is left needs."""

    tasks: int
    members: int

    @property
    def share(self) -> int:
        """Rounded up."""
        return -(-self.tasks // self.members) if self.members > 0 else 0

    def given(self, has: int) -> None:
        """A member has so many tasks by now: with its share it is done."""
        if has == self.share:
            self.members -= 1
            self.tasks -= has


@dataclass(slots=True)
class _Process:
    process_id: str
    counts: dict[MemberId, int] = field(default_factory=dict)
    tasks: set[TaskId] = field(default_factory=set)
    total: int = 0

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    @property
    def least_loaded(self) -> MemberId:
        return min(self.counts, key=self.counts.__getitem__)


class _Work:
    def __init__(
        self,
        members: Mapping[MemberId, TaskMember],
        subtopologies: Mapping[SubtopologyId, ConfiguredSubtopology],
        standby_replicas: int,
    ) -> None:
        self._standby_replicas = standby_replicas
        self._subtopologies = subtopologies
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[MemberId, _Process] = {}
        self._had_active: dict[TaskId, MemberId] = {}
        self._had_standby: dict[TaskId, list[MemberId]] = {}
        self._active: dict[MemberId, _Given] = {member_id: {} for member_id in members}
        self._standby: dict[MemberId, _Given] = {member_id: {} for member_id in members}
        active = sum(one.task_count for one in subtopologies.values())
        standby = standby_replicas * sum(one.task_count for one in subtopologies.values() if one.is_stateful)
        self._active_quota = _Quota(active, len(members))
        self._quota = _Quota(active + standby, len(members))
        self._done = 0

    def _is_slice_over(self, tasks: int = 1) -> bool:
        """So many tasks more are done."""
        self._done += tasks
        if self._done < TASKS_PER_SLICE:
            return False
        self._done = 0
        return True

    def prepare(self, members: Mapping[MemberId, TaskMember]) -> Slices[None]:
        """Who had which task, and which member is of which process."""
        for member_id, member in sorted(members.items()):
            process = self._processes.setdefault(member.process_id, _Process(member.process_id))
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            active, standby = _flat(member.previous.active), _flat(member.previous.standby)
            self._had_active |= dict.fromkeys(active, member_id)
            for task in standby:
                self._had_standby.setdefault(task, []).append(member_id)
            if self._is_slice_over((len(active) + len(standby)) // PLAIN_PER_TASK):
                yield

    def _tasks(self, *, is_stateful: bool) -> Slices[list[TaskId]]:
        """In the order of their partitions, so that the shares are given to all subtopologies alike."""
        tasks: list[TaskId] = []
        wide = sorted(
            (key, one.task_count) for key, one in self._subtopologies.items() if one.is_stateful or not is_stateful
        )
        task = 0
        while wide := [(key, size) for key, size in wide if size > task]:
            tasks += [(key, task) for key, _ in wide]
            task += 1
            if self._is_slice_over(1 + len(wide) // PLAIN_PER_TASK):
                yield
        return tasks

    def _give(self, task: TaskId, member_id: MemberId, into: dict[MemberId, _Given]) -> None:
        process = self._process_of[member_id]
        into[member_id].setdefault(task[0], []).append(task[1])
        process.tasks.add(task)
        process.total += 1
        process.counts[member_id] += 1
        if into is self._active:
            self._active_quota.given(process.counts[member_id])
        self._quota.given(process.counts[member_id])

    def _count(self, member_id: MemberId) -> int:
        return self._process_of[member_id].counts[member_id]

    # --- active tasks

    def assign_active(self) -> Slices[None]:
        left: list[TaskId] = []
        for task in (yield from self._tasks(is_stateful=False)):
            member_id = self._had_active.get(task)
            if member_id is not None and self._count(member_id) < self._active_quota.share:
                self._give(task, member_id, self._active)
            else:
                left.append(task)
            if self._is_slice_over():
                yield
        rest: list[TaskId] = []
        for task in left:
            member_id = self._with_least_load(self._had_standby.get(task, []), None)
            if member_id is not None and self._count(member_id) < self._active_quota.share:
                self._give(task, member_id, self._active)
            else:
                rest.append(task)
            if self._is_slice_over():
                yield
        queue = _Queue(self._processes)
        for task in _by_id(rest):
            process = queue.pop()
            self._give(task, process.least_loaded, self._active)
            queue.push(process)
            if self._is_slice_over():
                yield

    def _with_least_load(self, member_ids: list[MemberId], task: TaskId | None) -> MemberId | None:
        """Of those that had a standby task; Kafka compares the loads of the processes, then those of the members."""
        if not member_ids:
            return None
        best = member_ids[0]
        best_load, best_count = self._process_of[best].load, self._count(best)
        for member_id in member_ids[1:]:
            process = self._process_of[member_id]
            if process.load >= best_load or (task is not None and task in process.tasks):
                continue
            if self._count(member_id) < best_count:
                best, best_load, best_count = member_id, process.load, self._count(member_id)
        # As Kafka has it, the process of the first of them is asked, also where another one was chosen.
        return None if task is not None and task in self._process_of[member_ids[0]].tasks else best

    # --- standby tasks

    def assign_standby(self) -> Slices[None]:
        left: dict[TaskId, int] = {}
        tasks = yield from self._tasks(is_stateful=True)
        for task in reversed(tasks):
            for replica in range(self._standby_replicas):
                member_id = self._standby_candidate(task)
                if member_id is None:
                    left[task] = self._standby_replicas - replica
                    break
                self._give(task, member_id, self._standby)
            if self._is_slice_over():
                yield
        queue = _Queue(self._processes)
        for task in _by_id(left, reverse=True):
            for _ in range(left[task]):
                process = queue.pop_without(task)
                if process is None:
                    break  # more copies than processes
                self._give(task, process.least_loaded, self._standby)
                queue.push(process)
            if self._is_slice_over():
                yield

    def _standby_candidate(self, task: TaskId) -> MemberId | None:
        """The member that had the active task, else one that had a standby of it; with room, and without a copy."""
        member_id = self._had_active.get(task)
        if member_id is not None and self._may_have_standby(task, member_id):
            return member_id
        member_id = self._with_least_load(self._had_standby.get(task, []), task)
        return member_id if member_id is not None and self._may_have_standby(task, member_id) else None

    def _may_have_standby(self, task: TaskId, member_id: MemberId) -> bool:
        return task not in self._process_of[member_id].tasks and self._count(member_id) < self._quota.share

    def targets(self) -> Slices[Targets]:
        """What each member got."""
        targets: Targets = {}
        for member_id, active in self._active.items():
            standby = self._standby[member_id]
            targets[member_id] = Tasks(_ordered(active), _ordered(standby))
            if self._is_slice_over(self._count(member_id) // PLAIN_PER_TASK):
                yield
        return targets


class _Queue:
    """Processes, the one with the least load first; of equal ones, the one that has been in it longest."""

    def __init__(self, processes: Mapping[str, _Process]) -> None:
        self._order = count()
        self._heap: list[tuple[float, int, _Process]] = []
        for process in processes.values():
            self.push(process)

    def push(self, process: _Process) -> None:
        heapq.heappush(self._heap, (process.load, next(self._order), process))

    def pop(self) -> _Process:
        return heapq.heappop(self._heap)[-1]

    def pop_without(self, task: TaskId) -> _Process | None:
        """The first one without a copy of the task; the others stay."""
        passed = []
        found = None
        while self._heap and found is None:
            entry = heapq.heappop(self._heap)
            if task in entry[-1].tasks:
                passed.append(entry)
            else:
                found = entry[-1]
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return found


def _flat(tasks: TaskIds) -> list[TaskId]:
    return [(subtopology_id, task) for subtopology_id, indexes in tasks.items() for task in indexes]


def _by_id(tasks: Iterable[TaskId], *, reverse: bool = False) -> Iterator[TaskId]:
    """Those of one subtopology after the other; each has its tasks in order already."""
    found: dict[SubtopologyId, list[TaskId]] = {}
    for task in tasks:
        found.setdefault(task[0], []).append(task)
    for subtopology_id in sorted(found, reverse=reverse):
        yield from found[subtopology_id]


def _ordered(tasks: _Given) -> TaskIds:
    return {subtopology_id: frozenset(tasks[subtopology_id]) for subtopology_id in sorted(tasks)}
