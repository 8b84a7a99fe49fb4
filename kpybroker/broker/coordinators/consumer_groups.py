"""What consumer groups (KIP-848) need of a broker: settings, topics, and time for work that may not hold up the loop.

The machines of such groups (`core.consumer_group`) ask for two things as effects: a target assignment that an assignor
does not finish in its first slice, and the topics that patterns match. Each runs in a task of its own, in slices, and
its result goes back to the machine as an event. Assignors and patterns are imported when a group first needs them: most
brokers have only classic groups.

A streams group asks for its tasks in the same way (`core.streams_group.target`), and they are computed here too.

Not here: the rules (`core.consumer_group`), assignors and patterns themselves (`core`), the requests (`handlers`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.loop.yielding import YieldBudget, next_slice, paced
from kpybroker.broker.requests.context import RequestContext
from kpybroker.core.assignors.values import Assignment, Assignor, Members, Slices, Topics
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.consumer_group.target import ComputeTarget
from kpybroker.core.consumer_group.values import (
    ConsumerGroupLimits,
    MigrationPolicy,
    ResolvedPattern,
    ResolvePatterns,
    Surroundings,
)
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.machine import Now
from kpybroker.core.modern_group.values import ModernGroupConfig, TopicMetadata
from kpybroker.core.streams_group.target import ComputeTasks
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot
    from kpybroker.broker.coordinators.kind import Run
    from kpybroker.broker.loop.host import Host
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.core.patterns.topics import Pattern

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")


def consumer_surroundings(config: BrokerConfig, config_of: Callable[[str], ModernGroupConfig]) -> Surroundings:
    """The settings for consumer groups, the assignors in order of preference, and the language of patterns."""
    limits = ConsumerGroupLimits(
        max_size=config.get_int("group.consumer.max.size"),
        migration_policy=MigrationPolicy(config.get_str("group.consumer.migration.policy").lower()),
        regex_refresh_interval_ms=config.get_int("group.consumer.regex.refresh.interval.ms"),
    )
    names = map(_assignor_name, config.get_list("group.consumer.assignors"))
    return Surroundings(limits, config_of, {name: _assignor(name) for name in names}, _pattern_problem)


def _assignor_name(configured: str) -> str:
    """`uniform`, of that or of the name of Kafka's Java class."""
    return configured.rpartition(".")[2].removesuffix("Assignor").lower()


def _assignor(name: str) -> Assignor:
    def assign(members: Members, topics: Topics) -> Slices[Assignment]:
        from kpybroker.core.assignors.by_name import ASSIGNORS

        return ASSIGNORS[name](members, topics)

    return assign


def _pattern_problem(pattern: str) -> str | None:
    from kpybroker.core.patterns.topics import pattern_problem

    return pattern_problem(pattern)


class SnapshotTopics:
    """The topics of one snapshot of the metadata, as groups see them; each is built when it is first asked for.

    `racks` are those of the brokers, by id.
    """

    def __init__(self, snapshot: MetadataSnapshot, version: int, racks: Mapping[int, str]) -> None:
        self.version = version
        self._snapshot = snapshot
        self._racks = racks
        self._known: dict[str, TopicMetadata | None] = {}

    @property
    def names(self) -> Collection[str]:
        """Of all topics."""
        return self._snapshot.topics.keys()

    def by_name(self, name: str) -> TopicMetadata | None:
        """The topic of that name; None for one without an id, too."""
        if name not in self._known:
            self._known[name] = self._topic(name)
        return self._known[name]

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        """The topic with that id."""
        name = self._snapshot.topic_names.get(topic_id)
        return None if name is None else self.by_name(name)

    def id_of(self, name: str) -> bytes:
        """All zeros for a topic without one, or an unknown topic."""
        return self._snapshot.topic_id(name)

    def differs(self, other: SnapshotTopics, name: str) -> bool:
        """Whether a topic is not the same in both; without building it, unless there are racks."""
        if self.id_of(name) != other.id_of(name):
            return True
        counts = (len(topics._snapshot.topics.get(name, ())) for topics in (self, other))
        return len(set(counts)) > 1 or (bool(self._racks) and self.by_name(name) != other.by_name(name))

    def _topic(self, name: str) -> TopicMetadata | None:
        partitions, topic_id = self._snapshot.topics.get(name), self.id_of(name)
        if not partitions or topic_id == ZERO_UUID:
            return None
        racks: tuple[tuple[str, ...], ...] = ()
        if self._racks:
            racks = tuple(
                tuple(sorted({self._racks[broker_id] for broker_id in state.replicas if broker_id in self._racks}))
                for _, state in sorted(partitions.items())
            )
        return TopicMetadata(topic_id, name, len(partitions), racks)


class ConsumerGroupWork:
    """Consumer groups' view of one broker, and what their machines have it do.

    A version of `topics` is a time, so that it rises from one coordinator of a group to the next.
    """

    def __init__(self, host: Host, snapshot: MetadataSnapshot, config_of: Callable[[str], ModernGroupConfig]) -> None:
        self._host = host
        self._racks: dict[int, str] = {}
        self.surroundings = consumer_surroundings(host.config, config_of)
        self.topics = self._topics(snapshot, host.clock.time_ms())

    def _topics(self, snapshot: MetadataSnapshot, version: int) -> SnapshotTopics:
        """A broker that is down keeps its rack: groups need not hear of that."""
        racks = {broker.id: broker.rack for broker in snapshot.brokers.values() if broker.rack is not None}
        if not racks.items() <= self._racks.items():
            self._racks = self._racks | racks
        return SnapshotTopics(snapshot, version, self._racks)

    def follow(self, snapshot: MetadataSnapshot, named: Collection[str]) -> Callable[[GroupMachine], None]:
        """There is new metadata, in which some of the named topics may differ: what each machine must be given."""
        before = self.topics
        now = self.topics = self._topics(snapshot, max(self._host.clock.time_ms(), before.version + 1))
        changed = [name for name in named if now.differs(before, name)]
        has_new = any(now.id_of(name) not in (before.id_of(name), ZERO_UUID) for name in changed)
        return lambda machine: machine.on_topics_changed(now, changed, has_new=has_new)

    # --- effects

    def perform(self, machine: GroupMachine, effect: Any, run: Run) -> None:
        """Begin what a machine asks for; `run` is given the outcome of its result later, never within this call."""
        work: Callable[..., Awaitable[None]] = self._resolve
        if isinstance(effect, ComputeTarget):
            work = self._compute
        elif isinstance(effect, ComputeTasks):
            work = self._compute_tasks
        self._host.spawn(f"{type(effect).__name__} of {effect.group_id}", work, machine, effect, run)

    async def _compute(self, machine: GroupMachine, effect: ComputeTarget, run: Run) -> None:
        assignment = await run_to_end(paced(effect.computation.slices))
        run(machine.on_target_computed(effect.group_id, effect.computation, assignment, self._now()))

    async def _compute_tasks(self, machine: GroupMachine, effect: ComputeTasks, run: Run) -> None:
        targets = await run_to_end(paced(effect.slices))
        run(machine.settle(partial(effect.done, targets), ErrorCode.NONE, self._now()))

    async def _resolve(self, machine: GroupMachine, effect: ResolvePatterns, run: Run) -> None:
        from kpybroker.core.patterns.topics import resolve

        topics, started_ms = self.topics, self._host.clock.time_ms()
        valid = await _compiled(effect)
        found = await run_to_end(paced(resolve(valid, list(topics.names))))
        visible = await _visible(effect.rights, frozenset[str]().union(*found.values()))
        resolved = {
            text: ResolvedPattern(found.get(text, frozenset()) & visible, topics.version, started_ms)
            for text in effect.patterns
        }
        run(machine.on_patterns_resolved(effect.group_id, resolved, self._now()))

    def _now(self) -> Now:
        return Now(self._host.clock.time_ms(), self._host.clock.monotonic())


async def _compiled(effect: ResolvePatterns) -> list[Pattern]:
    """The patterns, without those that are too large here: a Kafka may have accepted them. These match nothing."""
    from kpybroker.core.patterns.topics import compile_pattern

    compiled = []
    for text in sorted(effect.patterns):
        try:
            compiled.append(compile_pattern(text))
        except KafkaError as error:
            logger.warning("[GroupId %s] %s It matches no topic.", effect.group_id, error.message)
        await next_slice()
    return compiled


async def _visible(rights: object, names: Collection[str]) -> frozenset[str]:
    """The topics that the caller of the heartbeat may describe."""
    assert isinstance(rights, RequestContext)
    budget = YieldBudget()
    visible = set()
    for name in names:
        if rights.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name, log_denied=False):
            visible.add(name)
        await budget.spend()
    return frozenset(visible)
