"""What this broker knows of the cluster: which brokers live, which broker leads what. Kafka's ``ZkMetadataCache``.

Only the controller's UpdateMetadata requests change it, one after the other, and `cluster.features` what is finalized;
it is the same on every broker, at slightly different times. A reader takes `snapshot` once and works on it: it never
changes, an update replaces it. An update copies what it changes and shares the rest, so that a request about one topic
costs the same in a cluster of 10 000.

It decides nothing, and knows nothing of logs: `replication` knows whether a partition is served here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.core.features import Finalized
from kpybroker.core.leader_and_isr import NO_LEADER
from kpybroker.core.tree import Stat, TreeError
from kpybroker.wire import znodes
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.config.broker import BrokerConfig

PartitionState = UpdateMetadataRequest.UpdateMetadataPartitionState

ELECTION_S = 3.0
"""How long a new controller takes at most to send the metadata, after the session of the previous one has ended."""

DELETED_NAMES_MAX = 1_000
"""How many names of deleted topics are remembered: the latest."""


class HasExists(Protocol):
    """The one question that the cache asks the tree."""

    async def exists(self, path: str, *, watch: bool = False) -> Stat | None:
        """As `coordination.tree.Tree.exists`."""


class Node(NamedTuple):
    """A broker as clients of one listener see it."""

    id: int
    host: str
    port: int
    rack: str | None = None


class AliveBroker(NamedTuple):
    """A live broker with all its listeners."""

    id: int
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    """Listener name -> (host, port)."""


class MetadataSnapshot(NamedTuple):
    """Partitions by topic and index; ids both ways; brokers by id. `controller_id` None: unknown. `features`: what the
    cluster has finalized (KIP-584)."""

    topics: Mapping[str, Mapping[int, PartitionState]] = MappingProxyType({})
    topic_ids: Mapping[str, bytes] = MappingProxyType({})
    topic_names: Mapping[bytes, str] = MappingProxyType({})
    controller_id: int | None = None
    brokers: Mapping[int, AliveBroker] = MappingProxyType({})
    features: Finalized = Finalized()

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """The partition as the controller last sent it; None if it is unknown."""
        partitions = self.topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def topic_id(self, topic: str) -> bytes:
        """All zeros for a topic without one, or an unknown topic."""
        return self.topic_ids.get(topic, ZERO_UUID)

    def has_leader(self, topic: str, index: int) -> bool:
        """Whether the partition is known and has a leader."""
        state = self.partition(topic, index)
        return state is not None and state.leader != NO_LEADER


class MetadataCache:
    """The current snapshot, and questions about it. `local_broker_id` is this broker's, once it is known."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._changed = trio.Event()
        self._listeners: list[Callable[[Collection[str]], None]] = []
        self._finalized_listeners: list[Callable[[Finalized], None]] = []
        self.snapshot = MetadataSnapshot()
        self._deleted_names: dict[str, None] = {}
        self.received_update = False
        """`wait_first_update` has nothing left to wait for."""
        self.local_broker_id = -1

    # --- queries

    def contains(self, topic: str, partition: int | None = None) -> bool:
        """Whether the topic, or this partition of it, is known."""
        if partition is None:
            return topic in self.snapshot.topics
        return self.snapshot.partition(topic, partition) is not None

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """See `MetadataSnapshot.partition`."""
        return self.snapshot.partition(topic, index)

    def partition_count(self, topic: str) -> int | None:
        """None for an unknown topic."""
        partitions = self.snapshot.topics.get(topic)
        return None if partitions is None else len(partitions)

    def was_deleted(self, topic: str) -> bool:
        """Whether a topic of this name was deleted. It may exist again."""
        return topic in self._deleted_names

    def topic_id(self, topic: str) -> bytes:
        """See `MetadataSnapshot.topic_id`."""
        return self.snapshot.topic_id(topic)

    def topic_name(self, topic_id: bytes) -> str | None:
        """None for an unknown id."""
        return self.snapshot.topic_names.get(topic_id)

    def leader_and_epoch(self, topic: str, index: int) -> tuple[int, int] | None:
        """(leader's id or NO_LEADER, leader epoch); None for an unknown partition."""
        state = self.snapshot.partition(topic, index)
        return None if state is None else (state.leader, state.leader_epoch)

    @property
    def controller_id(self) -> int | None:
        """The controller that sent the last update; None if it is unknown."""
        return self.snapshot.controller_id

    def is_alive(self, broker_id: int) -> bool:
        """Whether the controller lists the broker as live."""
        return broker_id in self.snapshot.brokers

    # --- endpoints

    def endpoint_for(self, context: RequestContext, broker_id: int) -> Node | None:
        """Where clients of the request's listener reach a live broker; None if it is down or lacks the listener.

        Normally its advertised address, the same from all brokers: a client reconnects when one moves. But without
        `advertised.listeners`, a broker that is alone, and all brokers that share this process, are reached on the host
        where the client has just reached this one: through a forwarded port or a container's network the configured
        address may be unreachable. (Kafka responds with its host's name: see docs/reference/guarantees.md.)
        """
        broker = self.snapshot.brokers.get(broker_id)
        if broker is None:
            return None
        endpoint = broker.endpoints.get(context.listener_name)
        if endpoint is None:
            return None
        is_alone = self.snapshot.brokers.keys() == {self.local_broker_id}
        is_embedded = not self._config.get_str("zookeeper.connect")
        if not self._config.get_str("advertised.listeners") and (is_alone or is_embedded):
            port = context.local_port if broker_id == self.local_broker_id else endpoint[1]
            endpoint = (context.local_host, port)
        return Node(broker_id, *endpoint, broker.rack)

    def alive_nodes(self, context: RequestContext) -> list[Node]:
        """Live brokers that have the request's listener, by id."""
        nodes = (self.endpoint_for(context, broker_id) for broker_id in sorted(self.snapshot.brokers))
        return [node for node in nodes if node is not None]

    def inter_broker_address(self, broker_id: int) -> tuple[str, int] | None:
        """Host and port of a live broker's inter-broker listener, as registered; None if it is down or lacks it."""
        broker = self.snapshot.brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(self._config.inter_broker_listener_name)

    # --- changes

    async def update(self, request: UpdateMetadataRequest) -> list[tuple[str, int]]:
        """Apply an update from the controller; returns the partitions that it deletes, as (topic, index).

        The caller runs one update at a time: the next one starts from the snapshot that this one leaves. Readers have
        the old one until the new one is complete.
        """
        old, budget = self.snapshot, YieldBudget()
        topic_ids, topic_names = _topic_ids(old, request)
        topics = old.topics
        deleted: dict[tuple[str, int], None] = {}
        states = [state for topic in request.topic_states for state in _named(topic)]
        states += request.ungrouped_partition_states
        if states:
            changed = dict(old.topics)
            touched: dict[str, dict[int, PartitionState]] = {}
            for state in states:
                await budget.spend()
                topic, index = state.topic_name, state.partition_index
                partitions = touched.get(topic)
                if partitions is None:
                    partitions = touched[topic] = dict(old.topics.get(topic, {}))
                if state.leader == LEADER_DURING_DELETE:
                    partitions.pop(index, None)
                    deleted[topic, index] = None
                else:
                    partitions[index] = _lean(state)
                    deleted.pop((topic, index), None)
            for topic, partitions in touched.items():
                if partitions:
                    changed[topic] = partitions
                    continue
                if changed.pop(topic, None) is not None:
                    self._remember_deleted(topic)
                topic_names.pop(topic_ids.pop(topic, ZERO_UUID), None)
            topics = changed
        assert self.snapshot.brokers is old.brokers, "two updates of the metadata at a time"
        self._replace(
            MetadataSnapshot(
                topics,
                topic_ids,
                topic_names,
                request.controller_id if request.controller_id >= 0 else None,
                {broker.id: _alive(broker) for broker in request.live_brokers},
                self.snapshot.features,
            )
        )
        if self._listeners:
            names = {state.topic_name for state in states} | {topic.topic_name for topic in request.topic_states}
            for listener in self._listeners:
                listener(names)
        return list(deleted)

    def on_topics_named(self, listener: Callable[[Collection[str]], None]) -> None:
        """Call `listener`, which must not block, after each update, with the topics that it named: some may be new,
        different or gone, as `snapshot` says then.
        """
        self._listeners.append(listener)

    def finalize(self, features: Finalized) -> None:
        """Take over what the cluster has finalized now. Its epoch never falls."""
        assert features.epoch >= self.snapshot.features.epoch, "an epoch of finalized features that falls"
        self._replace(self.snapshot._replace(features=features))
        for listener in self._finalized_listeners:
            listener(features)

    def on_finalized(self, listener: Callable[[Finalized], None]) -> None:
        """Call `listener`, which must not block, with what is finalized after each change of it."""
        self._finalized_listeners.append(listener)

    def _remember_deleted(self, topic: str) -> None:
        self._deleted_names[topic] = None
        if len(self._deleted_names) > DELETED_NAMES_MAX:
            del self._deleted_names[next(iter(self._deleted_names))]

    def _replace(self, snapshot: MetadataSnapshot) -> None:
        self.snapshot = snapshot
        self._changed.set()
        self._changed = trio.Event()

    async def wait_until(self, condition: Callable[[MetadataSnapshot], bool], timeout_s: float) -> bool:
        """Whether `condition` became true in time; it is evaluated again after every update."""
        with trio.move_on_after(timeout_s):
            while not condition(self.snapshot):
                await self._changed.wait()
            return True
        return condition(self.snapshot)

    async def wait_first_update(self, tree: HasExists) -> None:
        """Return when the controller has sent the metadata; at most as long as it takes to elect one.

        Kafka responds at once that there are no topics. librdkafka believes that, and drops what it has buffered. A new
        controller first sends the live brokers without any partition (``KafkaController.onControllerFailover``): that
        is complete only if the tree has no topics.
        """
        if self.received_update:
            return
        session_s = self._config.get_int("zookeeper.session.timeout.ms") / 1000
        with trio.move_on_after(session_s + ELECTION_S):
            await self.wait_until(lambda snapshot: bool(snapshot.brokers), math.inf)
            if not self.snapshot.topics and await _may_have_topics(tree):
                await self.wait_until(lambda snapshot: bool(snapshot.topics), math.inf)
        self.received_update = bool(self.snapshot.brokers)


async def _may_have_topics(tree: HasExists) -> bool:
    """True while the tree does not respond, too."""
    try:
        stat = await tree.exists(znodes.TOPICS)
    except TreeError:
        return True
    return stat is not None and stat.num_children > 0


def _named(topic: UpdateMetadataRequest.UpdateMetadataTopicState) -> list[PartitionState]:
    """From version 5 the wire has the name once per topic; here every state has it."""
    for state in topic.partition_states:
        state.topic_name = topic.topic_name
    return topic.partition_states


def _lean(state: PartitionState) -> PartitionState:
    """The state, its lists shared with other partitions: what is here is never changed."""
    state.isr = _list_of(tuple(state.isr))
    state.replicas = _list_of(tuple(state.replicas))
    state.offline_replicas = _list_of(tuple(state.offline_replicas))
    return state


@lru_cache(maxsize=2048)
def _list_of(ids: tuple[int, ...]) -> list[int]:
    return list(ids)


def _topic_ids(old: MetadataSnapshot, request: UpdateMetadataRequest) -> tuple[dict[str, bytes], dict[bytes, str]]:
    topic_ids, topic_names = dict(old.topic_ids), dict(old.topic_names)
    for topic in request.topic_states:
        previous = topic_ids.pop(topic.topic_name, None)
        if previous is not None:
            topic_names.pop(previous, None)
        if topic.topic_id != ZERO_UUID:
            topic_ids[topic.topic_name] = topic.topic_id
            topic_names[topic.topic_id] = topic.topic_name
    return topic_ids, topic_names


def _alive(broker: UpdateMetadataRequest.UpdateMetadataBroker) -> AliveBroker:
    if not broker.endpoints and broker.v0_port:
        return AliveBroker(broker.id, None, {"PLAINTEXT": (broker.v0_host, broker.v0_port)})
    endpoints = {
        endpoint.listener or _listener(endpoint): (endpoint.host, endpoint.port) for endpoint in broker.endpoints
    }
    return AliveBroker(broker.id, broker.rack, endpoints)


def _listener(endpoint: UpdateMetadataRequest.UpdateMetadataEndpoint) -> str:
    name = _LISTENER_OF_PROTOCOL.get(endpoint.security_protocol)
    if name is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown security protocol id: {endpoint.security_protocol}")
    return name


# Before version 3 an endpoint names its security protocol, which then is the listener's name.
_LISTENER_OF_PROTOCOL = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
