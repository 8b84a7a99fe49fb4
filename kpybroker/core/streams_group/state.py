"""One streams group: what its records say, what follows from them, and what lives only here.

*Durable*: epochs, topology, members, targets. Only `replay` assigns them. It never raises, whatever the order of the
records. *Derived* from them: which process has which task, who subscribes to which topic. *Live*: timers, the topology
with the topics of now, where members have state, who asked for a shutdown; lost with the partition, as in Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeVar

from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.consumer_group.records import TargetEpoch
from kpybroker.core.consumer_group.shared import Shared
from kpybroker.core.consumer_group.timers import LiveMember, TimerKind
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

FIRST_EPOCH: Final = 1
NO_TARGET: Final = TargetEpoch(-1, 0)
"""In place of a target epoch that has a tombstone."""

Task = tuple[SubtopologyId, int]
K = TypeVar("K")


class StreamsGroup:
    """A streams group; see the module. `initial` is the timer of the first assignment: it has no member."""

    __slots__ = (
        "_active",
        "_charged",
        "_copies",
        "_spares",
        "assignment_configs",
        "configured",
        "endpoint_epoch",
        "epoch",
        "group_id",
        "initial",
        "is_released",
        "live",
        "members",
        "metadata_checked_epoch",
        "metadata_hash",
        "owner",
        "settings",
        "shared",
        "shutdown_member_id",
        "target_epoch",
        "targets",
        "topology",
        "validated_topology_epoch",
        "written_up_to",
    )

    def __init__(self, group_id: str, shared: Shared, settings: StreamsSurroundings) -> None:
        self.group_id = group_id
        self.shared = shared
        self.settings = settings
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = 0
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        self.target_epoch = TargetEpoch(FIRST_EPOCH, 0)
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.written_up_to = 0  # the offset after the group's last record in the log
        # derived: how many members have a task, of any process or of one
        self._active: Counter[Task] = Counter()
        self._copies: Counter[tuple[str, Task]] = Counter()
        self._spares: Counter[tuple[str, Task]] = Counter()
        # live
        self.is_released = False
        self.live: dict[str, LiveMember] = {}
        self.initial = LiveMember(group_id, "")
        self.metadata_checked_epoch: int | None = None
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None
        self.owner = UNOWNED
        self._charged = 0

    # --- views

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def next_epoch(self) -> int:
        """Above that of the target as well, which is higher only in an odd log: else there would be no new target."""
        return max(self.epoch, self.target_epoch.epoch) + 1

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

    def live_member(self, member_id: str, owner: Owner) -> LiveMember:
        """What this coordinator knows of a member; made when it is first seen."""
        live = self.live.get(member_id)
        if live is None:
            live = self.live[member_id] = LiveMember(self.group_id, member_id, owner)
        return live

    def start_session(self, live: LiveMember, now: float) -> None:
        """The member's session starts again."""
        self.shared.timers.start(TimerKind.SESSION, live, now + self.config.session_timeout_ms / 1000)

    def forget_live(self, member_id: str) -> None:
        """The member is gone, or never came to be."""
        live = self.live.pop(member_id, None)
        if live is not None:
            live.is_gone = True
            self.shared.budget.add(live.owner, -live.size)
            live.size = 0

    @property
    def is_delayed(self) -> bool:
        """Whether the first assignment waits for more members."""
        return self.initial.deadlines[TimerKind.JOIN.value] is not None

    def release(self) -> None:
        """The group is gone, or its partition is; and so is all that it shares with others."""
        self.is_released = self.initial.is_gone = True
        for member_id in list(self.live):
            self.forget_live(member_id)
        self._subscribe(None)
        self.shared.budget.add(self.owner, -self._charged)
        self._charged, self.owner = 0, UNOWNED

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
                self._subscribe(topology)
                self.topology = topology
                self.charge()
            case StreamsTargetEpochRecord(value=target_epoch):
                self.target_epoch = NO_TARGET if target_epoch is None else target_epoch
            case StreamsTargetRecord(member_id=member_id, value=target):
                if target is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = target
                self.charge_member(member_id)
            case StreamsMemberRecord(member_id=member_id, value=metadata):
                if metadata is None:
                    self._remove(member_id)
                else:
                    self._put(replace(self._member(member_id), metadata=metadata))
            case StreamsCurrentRecord(member_id=member_id, value=current):
                if current is not None:
                    self._put(replace(self._member(member_id), current=current))
                elif member_id in self.members:
                    self._put(replace(self.members[member_id], current=GONE))

    def _subscribe(self, topology: Topology | None) -> None:
        """Topics of the topology, whose changes the group must hear of."""
        old = frozenset[str]() if self.topology is None else self.topology.required_topics
        new = frozenset[str]() if topology is None else topology.required_topics
        for name in new - old:
            self.shared.subscribe(self.group_id, name)
        for name in old - new:
            self.shared.unsubscribe(self.group_id, name)

    def _member(self, member_id: str) -> StreamsMember:
        """The member, or a new one: after compaction, its assignment may come before what it said of itself."""
        return self.members.get(member_id) or StreamsMember(member_id)

    def _put(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is not None:
            self._hold(old, -1)
        self._hold(member, 1)
        self.charge_member(member.member_id)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.targets.pop(member_id, None)
            self._hold(member, -1)
        if not self.members:
            self.shutdown_member_id = None
        self.forget_live(member_id)

    def _hold(self, member: StreamsMember, change: int) -> None:
        process_id = member.metadata.process_id
        for task in _tasks(member.current, is_active=True):
            _add(self._active, task, change)
            _add(self._copies, (process_id, task), change)
        for task in _tasks(member.current, is_active=False):
            _add(self._copies, (process_id, task), change)
            _add(self._spares, (process_id, task), change)

    # --- the budget

    def belongs_to(self, owner: Owner) -> None:
        """What the group itself takes is the owner's, if it has none yet."""
        if self.owner == UNOWNED and owner != UNOWNED:
            self.owner = owner
            self.charge()

    def charge(self) -> None:
        """Report what the group itself takes."""
        if self.owner == UNOWNED:
            return
        size = group_bytes(self.topology)
        self.shared.budget.add(self.owner, size - self._charged)
        self._charged = size

    def charge_member(self, member_id: str) -> None:
        """Report what the member takes in memory to the budget of the client that made it."""
        live, member = self.live.get(member_id), self.members.get(member_id)
        if live is None or member is None:
            return
        size = member_bytes(member, self.target_of(member_id))
        self.shared.budget.add(live.owner, size - live.size)
        live.size = size


def _tasks(current: CurrentTasks, *, is_active: bool) -> Iterator[Task]:
    for held in (current.assigned, current.pending_revocation):
        for of_kind in (held.active,) if is_active else (held.standby, held.warmup):
            for subtopology_id, indexes in of_kind.items():
                yield from ((subtopology_id, task) for task in indexes)


def _add(counts: Counter[K], key: K, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]
