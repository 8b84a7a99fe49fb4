"""One streams group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, topology, members, targets. Only `replay` assigns them. It never raises, whatever the order of the
records. *Derived* from them: which process has which task, who subscribes to which topic. *Live*: timers, the topology
with the topics of now, where members have state, who asked for a shutdown; lost with the partition, as in Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from kpybroker.core.modern_group.shared import Shared
from kpybroker.core.modern_group.state import ModernGroup
from kpybroker.core.modern_group.timers import LiveMember, TimerKind
from kpybroker.core.streams_group.members import (
    GONE,
    NO_TASKS,
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

K = TypeVar("K")
_Change = Callable[[dict[Any, Counter[int]], Any, Iterable[int]], None]


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
        # derived: how many members have a task, of any process or of one; by subtopology
        self._active: dict[SubtopologyId, Counter[int]] = {}
        self._copies: dict[tuple[str, SubtopologyId], Counter[int]] = {}
        self._spares: dict[tuple[str, SubtopologyId], Counter[int]] = {}
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

    def active_tasks(self, subtopology_id: SubtopologyId) -> Collection[int]:
        """The active tasks that members have, to run or to give up."""
        return self._active.get(subtopology_id, ())

    def copies(self, process_id: str, subtopology_id: SubtopologyId) -> Collection[int]:
        """The tasks of any kind that members of the process have."""
        return self._copies.get((process_id, subtopology_id), ())

    def spares(self, process_id: str, subtopology_id: SubtopologyId) -> Collection[int]:
        """The standby and warm-up tasks that members of the process have."""
        return self._spares.get((process_id, subtopology_id), ())

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
            self._hold(old, _give_up)
        if new is not None:
            self._hold(new, _add)
        elif old is not None:
            self.endpoints.pop(old.member_id, None)
        if not self.members:
            self.shutdown_member_id = None

    def _hold(self, member: StreamsMember, change: _Change) -> None:
        process_id = member.metadata.process_id
        for held in (member.current.assigned, member.current.pending_revocation):
            for subtopology_id, epochs in held.active.items():
                change(self._active, subtopology_id, epochs.keys())
                change(self._copies, (process_id, subtopology_id), epochs.keys())
            for subtopology_id, indexes in chain(held.standby.items(), held.warmup.items()):
                change(self._copies, (process_id, subtopology_id), indexes)
                change(self._spares, (process_id, subtopology_id), indexes)

    # --- the budget

    def own_bytes(self) -> int:
        """What the group itself takes: its topology."""
        return group_bytes(self.topology)

    def bytes_of(self, member: StreamsMember) -> int:
        """What the member takes in memory, its tasks included."""
        return member_bytes(member, self.target_of(member.member_id))


def _add(counts: dict[K, Counter[int]], key: K, tasks: Iterable[int]) -> None:
    counts.setdefault(key, Counter()).update(tasks)


def _give_up(counts: dict[K, Counter[int]], key: K, tasks: Iterable[int]) -> None:
    of_key = counts[key]
    for task in tasks:
        if of_key[task] > 1:
            of_key[task] -= 1
        else:
            del of_key[task]
    if not of_key:
        del counts[key]
