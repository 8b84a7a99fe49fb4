"""One streams group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, topology, members, targets. Only `replay` assigns them. It never raises, whatever the order of the
records. *Derived* from them: which process has which task, who subscribes to which topic. *Live*: timers, the topology
with the topics of now, where members have state, who asked for a shutdown; lost with the partition, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.state import ModernGroup
from kpybroker.core.modern_group.timers import LiveMember, TimerKind
from kpybroker.core.streams_group.members import (
    GONE,
    NO_TASKS,
    CurrentTasks,
    StreamsMember,
    SubtopologyId,
    Tasks,
)
from kpybroker.core.streams_group.records import (
    StreamsCurrentRecord,
    StreamsGroupEpochRecord,
    StreamsMemberRecord,
    StreamsRecord,
    StreamsTargetEpochRecord,
    StreamsTargetRecord,
    TopologyRecord,
)
from kpybroker.core.streams_group.sizes import group_bytes, member_bytes
from kpybroker.core.streams_group.topics.configuring import ConfiguredTopology
from kpybroker.core.streams_group.topics.topology import Topology
from kpybroker.core.streams_group.values import StreamsGroupConfig, StreamsGroupState, StreamsSurroundings

Task = tuple[SubtopologyId, int]
K = TypeVar("K")


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """A streams group; see the module. `initial` is the timer of the first assignment: it has no member."""

    __slots__ = (
        "_active",
        "_copies",
        "_spares",
        "assignment_configs",
        "computing",
        "configured",
        "endpoint_epoch",
        "endpoints",
        "initial",
        "settings",
        "shutdown_member_id",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str, shared: Shared, settings: StreamsSurroundings) -> None:
        super().__init__(group_id, shared)
        self.settings = settings
        self.validated_topology_epoch = 0
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        self.topology: Topology | None = None
        # derived: how many members have a task, of any process or of one
        self._active: dict[Task, int] = {}
        self._copies: dict[tuple[str, Task], int] = {}
        self._spares: dict[tuple[str, Task], int] = {}
        # live
        self.computing: object | None = None  # the computation that runs elsewhere
        self.initial = LiveMember(group_id, "")
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, object] = {}  # by member, what `endpoints` found last
        self.shutdown_member_id: str | None = None

    # --- views

    @property
    def state(self) -> StreamsGroupState:
        """The group's state, from its topology and those of its members."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch.epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.current.is_reconciled_to(self.target_epoch.epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def config(self) -> StreamsGroupConfig:
        """What holds for the group now."""
        return self.settings.config_of(self.group_id)

    def target_of(self, member_id: str) -> Tasks:
        """A member's part of the target."""
        return self.targets.get(member_id, NO_TASKS)

    def is_subscribed_to(self, topic_name: str) -> bool:
        """Whether members read the topic."""
        return bool(self.members) and self.topology is not None and topic_name in self.topology.source_topics

    def has_active(self, subtopology_id: SubtopologyId, task: int) -> bool:
        """Whether a member has the active task, to run or to give up."""
        return (subtopology_id, task) in self._active

    def has_copy(self, process_id: str, subtopology_id: SubtopologyId, task: int) -> bool:
        """Whether a member of the process has the task, as one of any kind."""
        return (process_id, (subtopology_id, task)) in self._copies

    def has_spare(self, process_id: str, subtopology_id: SubtopologyId, task: int) -> bool:
        """Whether a member of the process has the task as a standby or warm-up task."""
        return (process_id, (subtopology_id, task)) in self._spares

    # --- live

    @property
    def is_delayed(self) -> bool:
        """Whether the first assignment waits for more members."""
        return self.initial.deadlines[TimerKind.JOIN.value] is not None

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        self.initial.is_gone = True
        self.computing = None
        self.endpoints.clear()
        super().release()

    # --- the log

    def replay(self, record: StreamsRecord) -> None:
        """Apply a record that is in the log. That a group ends (the tombstone of its epoch) is its owner's matter."""
        match record:
            case StreamsGroupEpochRecord(value=value):
                if value is not None:
                    self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                    self.validated_topology_epoch = value.validated_topology_epoch
                    self.assignment_configs = value.assignment_configs
            case TopologyRecord(value=topology):
                names = [() if one is None else one.required_topics for one in (topology, self.topology)]
                self.count_topics(*names)
                self.topology = topology
                self.charge()
            case StreamsTargetEpochRecord(value=target_epoch):
                self.set_target_epoch(target_epoch)
            case StreamsTargetRecord(member_id=member_id, value=target):
                self.set_target(member_id, target)
            case StreamsMemberRecord(member_id=member_id, value=metadata):
                self.set_metadata(member_id, metadata)
            case StreamsCurrentRecord(member_id=member_id, value=current):
                self.set_current(member_id, current)

    def new_member(self, member_id: str) -> StreamsMember:
        """A member of which no record is known."""
        return StreamsMember(member_id)

    def without_assignment(self, member: StreamsMember) -> StreamsMember:
        """The member, whose assignment has a tombstone."""
        return replace(member, current=GONE)

    def count(self, old: StreamsMember | None, new: StreamsMember | None) -> None:
        """Keep who has which task."""
        if old is not None:
            self._hold(old, -1)
        if new is not None:
            self._hold(new, 1)
        elif old is not None:
            self.endpoints.pop(old.member_id, None)
        if not self.members:
            self.shutdown_member_id = None

    def _hold(self, member: StreamsMember, change: int) -> None:
        process_id = member.metadata.process_id
        for task in _tasks(member.current, is_active=True):
            _add(self._active, task, change)
            _add(self._copies, (process_id, task), change)
        for task in _tasks(member.current, is_active=False):
            _add(self._copies, (process_id, task), change)
            _add(self._spares, (process_id, task), change)

    # --- the budget

    def own_bytes(self) -> int:
        """What the group itself takes: its topology."""
        return group_bytes(self.topology)

    def bytes_of(self, member: StreamsMember) -> int:
        """What the member takes in memory, its tasks included."""
        return member_bytes(member, self.target_of(member.member_id))


def _tasks(current: CurrentTasks, *, is_active: bool) -> Iterator[Task]:
    for held in (current.assigned, current.pending_revocation):
        for of_kind in (held.active,) if is_active else (held.standby, held.warmup):
            for subtopology_id, indexes in of_kind.items():
                yield from ((subtopology_id, task) for task in indexes)


def _add(counts: dict[K, int], key: K, change: int) -> None:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        del counts[key]
