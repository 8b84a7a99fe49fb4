"""A broker cut down to what the controller touches: the real controller, metadata and topic administration over the
embedded tree, with replicas that obey and remember."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import trio

from kpybroker.broker.cluster.config_repository import BrokerListener, ConfigRepository, TopicListener
from kpybroker.broker.cluster.controller import ClusterController
from kpybroker.broker.cluster.features import Features, UnsupportedFeatures
from kpybroker.broker.cluster.metadata_cache import MetadataCache
from kpybroker.broker.cluster.registration import Registration
from kpybroker.broker.cluster.topic_admin import NewTopic, TopicAdmin
from kpybroker.broker.handlers import routes
from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.loop.host import Host
from kpybroker.broker.peers.peers import Directory, Peers
from kpybroker.broker.replication.partition import Partition
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore, EmbeddedTree
from kpybroker.core.authorizer import Action, AllowAll, Authorizer, Operation, Principal, Requester, ResourceType
from kpybroker.core.features import SUPPORTED, Ranges
from kpybroker.core.tree import TreeEvent
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.network.memory_transport import MemoryTransport
from tests.support.requests.handling import response_of

PartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError

NOW_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000


class FakeClock(Clock):
    def time_ms(self) -> int:
        return NOW_MS

    def monotonic(self) -> float:
        return trio.current_time()


class ObedientReplicas:
    """Carries out every request at once; `fail_deletion` makes StopReplica return KAFKA_STORAGE_ERROR."""

    def __iter__(self) -> Iterator[Partition]:
        return iter(())

    def __init__(self) -> None:
        self.controller_epoch = 0
        self.state_change_lock = trio.Lock()
        self.requests: list[Any] = []
        self.leading: dict[tuple[str, int], int] = {}
        self.deleted: list[tuple[str, int]] = []
        self.fail_deletion = False

    async def become_leader_or_follower(
        self, request: LeaderAndIsrRequest, version: int, correlation_id: int = 0
    ) -> LeaderAndIsrResponse:
        self.requests.append(request)
        self.controller_epoch = request.controller_epoch
        topics = []
        for topic in request.topic_states:
            errors = []
            for state in topic.partition_states:
                name = topic.topic_name if version < 5 else ""
                self.leading[topic.topic_name, state.partition_index] = state.leader_epoch
                errors.append(PartitionError(topic_name=name, partition_index=state.partition_index))
            topics.append(LeaderAndIsrResponse.LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=errors))
        if version >= 5:
            return LeaderAndIsrResponse(topics=topics)
        return LeaderAndIsrResponse(partition_errors=[error for topic in topics for error in topic.partition_errors])

    async def delete_left_behind(self, request: UpdateMetadataRequest) -> None:
        """Nothing is."""

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        self.requests.append(request)
        errors = []
        for topic in request.topic_states:
            for state in topic.partition_states:
                key = (topic.topic_name, state.partition_index)
                failed = self.fail_deletion and state.delete_partition
                if not failed:
                    self.leading.pop(key, None)
                    if state.delete_partition:
                        self.deleted.append(key)
                errors.append(
                    StopReplicaResponse.StopReplicaPartitionError(
                        topic_name=key[0],
                        partition_index=key[1],
                        error_code=ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE,
                    )
                )
        return StopReplicaResponse(partition_errors=errors)


class ForgetfulCoordinators:
    def __init__(self) -> None:
        self.deleted_topics: list[str] = []

    def on_topic_deleted(self, topic: str) -> None:
        self.deleted_topics.append(topic)


class NoConfigs:
    def __init__(self) -> None:
        self.prefetched: dict[str, bool] = {}
        self.overrides: dict[str, dict[str, str]] = {}
        self.topic_listeners: list[TopicListener] = []
        self.broker_listeners: list[BrokerListener] = []

    async def prefetch(self, topics: Mapping[str, bool]) -> None:
        self.prefetched |= topics

    def forget(self, topic: str) -> None:
        pass

    def on_topic_change(self, listener: TopicListener) -> None:
        self.topic_listeners.append(listener)

    def on_broker_change(self, listener: BrokerListener) -> None:
        self.broker_listeners.append(listener)

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        return self.overrides.get(topic, {})


class ControlBroker:
    """Has the attributes of `broker.app.Broker` that the control side uses."""

    def __init__(
        self, tree: EmbeddedTree, nursery: trio.Nursery, props: dict[str, str], supported: Ranges = SUPPORTED
    ) -> None:
        self.config = BrokerConfig({"broker.id": "0", "log.dirs": "/nowhere", **props})
        self.clock = FakeClock()
        self.tree = tree
        self.node_id = self.config.get_int("broker.id")
        self.cluster_id = "a-cluster"
        self.random = random.Random(7)
        self.authorizer: Authorizer = AllowAll()
        self.replicas = ObedientReplicas()
        self.coordinators = ForgetfulCoordinators()
        self.configs = NoConfigs()
        self.metadata = MetadataCache(self.config)
        self._listeners: list[Callable[[TreeEvent], None]] = []
        self._nursery = nursery
        self.unsupported: list[UnsupportedFeatures] = []
        self.features = Features(cast(Host, self), self.metadata, supported, self.unsupported.append)
        self.registration = Registration(cast(Host, self), list, supported)
        directory = Directory(self.metadata.inter_broker_address, lambda: self.controller.controller_id)
        self.peers = Peers(
            cast(Host, self), MemoryTransport(), directory, partial(routes.respond_locally, cast(Any, self))
        )
        self.controller: ClusterController = ClusterController(
            cast(Host, self), self.registration, cast(ConfigRepository, self.configs), self.peers
        )
        self.topics = TopicAdmin(cast(Host, self), self.metadata, self.controller.wait_until_deleted)

    @property
    def broker_epoch(self) -> int:
        return self.registration.broker_epoch

    def on_tree_event(self, listener: Callable[[TreeEvent], None]) -> None:
        self._listeners.append(listener)

    def tree_event(self, event: TreeEvent) -> None:
        for listener in self._listeners:
            listener(event)

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._nursery.start_soon(function, *args, name=name)

    def context(self, api_key: int, version: int, authorizer: Authorizer | None = None) -> RequestContext:
        return RequestContext(
            PlainConnectionInfo(local=("reached.example", 19092)),
            authorizer or self.authorizer,
            api_key,
            version,
        )

    async def start(self) -> None:
        self.tree.listen(self.tree_event)
        await self.tree.start(1)
        self.metadata.local_broker_id = self.node_id
        await self.features.start()
        await self.registration.register()
        await self.controller.elect()
        await self.features.read()


@asynccontextmanager
async def running_broker(
    store: EmbeddedStore | None = None,
    *,
    topics: Mapping[str, int] = MappingProxyType({}),
    features: Ranges = SUPPORTED,
    **props: str,
) -> AsyncIterator[ControlBroker]:
    """A started single broker; `topics` have so many partitions, `features` are what it supports, `props` are
    configuration keys with `_` for `.`.
    """
    store = store or EmbeddedStore.in_memory(lambda: NOW_MS)
    keys = {name.replace("_", "."): value for name, value in props.items()}
    async with trio.open_nursery() as nursery:
        broker = ControlBroker(store.session(), nursery, keys, features)
        await broker.start()
        await create(broker, topics)
        yield broker
        await broker.controller.close()
        await broker.tree.close()
        nursery.cancel_scope.cancel()


async def create(broker: ControlBroker, topics: Mapping[str, int]) -> None:
    """Create topics of so many partitions."""
    results = await broker.topics.create_topics(
        [NewTopic(name, count, 1) for name, count in topics.items()], TIMEOUT_MS
    )
    assert all(result.error.code is ErrorCode.NONE for result in results.values())


@dataclass
class Denying:
    """Refuses the given (operation, resource type, name) triples; a name of None means all names."""

    denied: Iterable[tuple[Operation, ResourceType, str | None]]
    audits_allowed: bool = False
    generation: int = 0

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return not any(
            operation is op and resource_type is rt and denied_name in (None, name)
            for op, rt, denied_name in self.denied
        )

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return all((operation, resource_type) != (op, rt) for op, rt, _ in self.denied)

    def audit(self, request: Requester, action: Action, allowed: bool) -> None:
        """Not kept."""


async def call(
    broker: ControlBroker, handler: Any, request: Any, version: int, *, authorizer: Authorizer | None = None
) -> Any:
    """What dispatch gets from the API's module."""
    return await response_of(handler, broker, request, broker.context(handler.LEDGER.api_key, version, authorizer))
