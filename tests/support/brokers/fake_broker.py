"""A fake broker for the coordinators and their handlers: partitions in memory, a high watermark to hold back.

`FakePartition` keeps what `Partition` and `Log` promise them: appends get offsets at once, `high_watermark` follows
unless held, `wait_high_watermark` ends with leadership.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import trio

from kpybroker.broker.cluster.metadata_cache import MetadataSnapshot, Node
from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.broker.coordinators.groups import GroupCoordinators
from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.config.broker import BrokerConfig
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.tree import Tree
from kpybroker.core.authorizer import Action, Operation, Principal, Requester, ResourceType
from kpybroker.core.budget import StateBudget
from kpybroker.core.features import SUPPORTED
from kpybroker.core.group.records import OffsetRecord, RecordVersions, encode_record
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.storage.log.append import ProducedBatches
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import iter_batches, parse_header, stamp
from kpybroker.wire.records.builder import build_batch
from tests.support.requests.handling import response_of

EPOCH_MS = 1_700_000_000_000


class FakeClock(Clock):
    """trio's clock; the wall starts at EPOCH_MS."""

    def time_ms(self) -> int:
        return EPOCH_MS + int(trio.current_time() * 1000)

    def monotonic(self) -> float:
        return trio.current_time()


class FakeSlice:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.released = 0

    def read(self) -> bytes:
        return self.data

    def release(self) -> None:
        self.released += 1


class FakeLog:
    """Batches as they are in a log, and only what is needed to load them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.log_dir = "/logs"
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.slices: list[FakeSlice] = []

    def read(self, offset: int, max_bytes: int, *, max_offset: int, min_one_message: bool) -> SimpleNamespace:
        assert min_one_message
        found = b""
        for position, header in iter_batches(self.data):
            if offset <= header.last_offset < max_offset and (not found or len(found) + header.size <= max_bytes):
                found += bytes(self.data[position : position + header.size])
        if not found:
            return SimpleNamespace(slice=None)
        self.slices.append(FakeSlice(found))
        return SimpleNamespace(slice=self.slices[-1])


class FakePartition:
    def __init__(self, index: int, topic: str = GROUP_METADATA_TOPIC_NAME) -> None:
        self.topic = topic
        self.index = index
        self.log: FakeLog | None = FakeLog()
        self.leader_epoch = 0
        self.is_leader = True
        self.held_at: int | None = None
        self.append_error: Exception | None = None
        self.flush_required = False
        self.flushed = 0
        self._changed = trio.Event()

    def online_log(self) -> FakeLog:
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return self.log

    def append(self, produced: ProducedBatches) -> SimpleNamespace:
        if self.append_error is not None:
            error, self.append_error = self.append_error, None
            raise error
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.online_log()
        batch = bytearray(produced.records)
        header = parse_header(batch)
        first = log.log_end_offset
        stamp(batch, 0, first, self.leader_epoch)
        log.data += batch
        log.log_end_offset = first + header.last_offset_delta + 1
        self._wake()
        return SimpleNamespace(
            first_offset=first, last_offset=log.log_end_offset - 1, flush_required=self.flush_required
        )

    @property
    def high_watermark(self) -> int:
        end = self.online_log().log_end_offset
        return end if self.held_at is None else min(self.held_at, end)

    def hold(self) -> None:
        self.held_at = self.high_watermark

    def release(self) -> None:
        self.held_at = None
        self._wake()

    def resign(self) -> None:
        self.is_leader = False
        self._wake()

    async def wait_high_watermark(self, offset: int) -> None:
        while self.high_watermark < offset:
            if not self.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            await self._changed.wait()

    async def flush(self, offset: int) -> None:
        await trio.lowlevel.checkpoint()
        self.flushed = max(self.flushed, offset)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def topic_id_of(name: str) -> bytes:
    """The id of each topic of `FakeMetadata`."""
    return name.encode().ljust(16, b"-")


def topic_of(topic: Any) -> str:
    """The name of a topic in a response, which may have only its id."""
    name: str = topic.name or topic.topic_id.rstrip(b"-").decode()
    return name


class FakeMetadata:
    """Topics as name -> partition count; broker 1 leads everything and is where the client reached it."""

    def __init__(self) -> None:
        self.topics: dict[str, int] = {"t": 3, "u": 1}
        self.leaderless: set[str] = set()
        self.news = trio.Event()
        self.snapshot = MetadataSnapshot()

    def on_topics_named(self, listener: Callable[[Collection[str]], None]) -> None:
        """No topic ever changes here."""

    def contains(self, topic: str, partition: int | None = None) -> bool:
        return topic in self.topics and (partition is None or 0 <= partition < self.topics[topic])

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def topic_id(self, topic: str) -> bytes:
        return topic_id_of(topic) if topic in self.topics else ZERO_UUID

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name in self.topics if topic_id_of(name) == topic_id), None)

    def has_leader(self, topic: str, index: int) -> bool:
        return self.contains(topic, index) and topic not in self.leaderless

    def leader_and_epoch(self, topic: str, index: int) -> tuple[int, int] | None:
        return (1, 0) if self.has_leader(topic, index) else None

    def endpoint_for(self, context: RequestContext, broker_id: int) -> Node | None:
        return Node(broker_id, context.local_host, context.local_port) if broker_id == 1 else None

    async def wait_until(self, condition: Callable[[Any], bool], timeout_s: float) -> bool:
        with trio.move_on_after(timeout_s):
            while not condition(self):
                await self.news.wait()
        return condition(self)


class Denying:
    """Allows everything but the operations in `denied`, by (operation, resource type, name)."""

    generation = 0
    audits_allowed = False

    def __init__(self, denied: Collection[tuple[Operation, ResourceType, str]] = ()) -> None:
        self.denied = set(denied)

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return (operation, resource_type, name) not in self.denied

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return all((operation, resource_type) != (op, rt) for op, rt, _ in self.denied)

    def audit(self, request: Requester, action: Action, allowed: bool) -> None:
        """Not kept."""


@dataclass
class FakeTopics:
    metadata: FakeMetadata
    refusal: ErrorCode = ErrorCode.NONE
    created: int = 0
    creates: bool = True

    async def auto_create(self, names: list[str], *, mutations: Any = None) -> dict[str, ErrorCode]:
        self.created += 1
        if self.refusal is not ErrorCode.NONE:
            return dict.fromkeys(names, self.refusal)
        if self.creates:
            self.metadata.topics |= dict.fromkeys(names, 4)
        return dict.fromkeys(names, ErrorCode.NONE if self.creates else ErrorCode.LEADER_NOT_AVAILABLE)


class FakeBroker:
    """A `Host` for `GroupCoordinators`, with what else the group handlers use of a `Broker`."""

    def __init__(self, nursery: trio.Nursery, partitions: int = 1, **settings: str) -> None:
        self._nursery = nursery
        props = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": str(partitions)}
        props |= {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig(props)
        self.node_id = 1
        self.clock = FakeClock()
        self.random = random.Random(1)
        self.metadata = FakeMetadata()
        self.features = SimpleNamespace(supported=SUPPORTED)
        self.metadata.topics[GROUP_METADATA_TOPIC_NAME] = partitions
        self.partitions = {index: FakePartition(index) for index in range(partitions)}
        self.controller: Any = SimpleNamespace(leaderless=frozenset())
        self.replicas: Any = SimpleNamespace(partition=lambda topic, index: self.partitions.get(index))
        self.topics = FakeTopics(self.metadata)
        self.authorizer = Denying()
        self.budget = StateBudget()
        self.failed_dirs: list[Exception] = []
        self.tree: Any = None
        configs = GroupConfigs(self.config)
        self.persister: Any = None
        self.groups = GroupCoordinators(
            self,  # type: ignore[arg-type]
            self.metadata,  # type: ignore[arg-type]
            self.replicas,  # type: ignore[arg-type]
            configs,
            lambda: self.persister,
        )

    def spawn(self, name: str, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._nursery.start_soon(function, *args, name=name)

    def log_dir_failed(self, error: Exception) -> None:
        self.failed_dirs.append(error)

    async def lead(self, index: int = 0, epoch: int = 0) -> None:
        """Win the election, and wait for the partition to be loaded."""
        self.groups.on_elected(index, epoch)
        await self.loaded(index)

    def begin_loading(self, index: int = 0, epoch: int = 0) -> None:
        """Win the election of a partition that has a record to be read first."""
        record = OffsetRecord("before", ("t", 0), OffsetAndMetadata(0, -1, "", 0))
        batch = build_batch([(*encode_record(record, RecordVersions()), 0)])
        self.partitions[index].append(ProducedBatches(batch, 0))
        self.groups.on_elected(index, epoch)

    async def loaded(self, index: int = 0) -> None:
        while index in self.groups.partitions._loading:
            await trio.lowlevel.checkpoint()

    def context(self, api_key: ApiKey, version: int, client_id: str | None = "c") -> RequestContext:
        return RequestContext(PlainConnectionInfo(), self.authorizer, api_key, version, 0, client_id)


@asynccontextmanager
async def fake_broker(partitions: int = 1, *, leads: bool = True, **settings: str) -> AsyncIterator[FakeBroker]:
    """Background tasks end with the block. Keys are given with `_` for `.`."""
    async with trio.open_nursery() as nursery:
        broker = FakeBroker(nursery, partitions, **settings)
        if leads:
            for index in broker.partitions:
                await broker.lead(index)
        yield broker
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def memory_tree() -> AsyncIterator[Tree]:
    """An embedded tree that has `/consumers`, as a broker's start leaves it."""
    tree = EmbeddedStore.in_memory(lambda: EPOCH_MS).session()
    tree.listen(lambda event: None)
    await tree.start(timeout=10)
    await tree.create("/consumers")
    yield tree
    await tree.close()


async def call(broker: FakeBroker, module: Any, request: Any, version: int, client_id: str | None = "c") -> Any:
    """What dispatch gets from the API's module."""
    context = broker.context(module.LEDGER.api_key, version, client_id)
    assert module.LEDGER.min_version <= version <= module.LEDGER.max_version
    return await response_of(module, broker, request, context)


def versions(module: Any, first: int = 0) -> range:
    """Every version the handler serves, from `first` on."""
    return range(max(first, module.LEDGER.min_version), module.LEDGER.max_version + 1)
