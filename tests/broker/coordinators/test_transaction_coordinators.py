"""Transaction coordinators without a broker: partitions in memory, markers that the test writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.coordinators.transactions import TransactionCoordinators
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.topic_names import TRANSACTION_STATE_TOPIC_NAME
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.transaction.values import AddPartitions, EndTransaction, InitProducerId, InitResult, WriteMarkers
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.brokers.fake_broker import FakeClock, FakeMetadata, FakePartition
from tests.support.brokers.host import FakeHost

T0: PartitionKey = ("t", 0)


class Markers:
    """Records what it is asked to write; each order waits for `may_write`."""

    def __init__(self) -> None:
        self.orders: list[WriteMarkers] = []
        self.may_write = trio.Event()

    async def write(self, order: WriteMarkers) -> dict[PartitionKey, ErrorCode]:
        self.orders.append(order)
        await self.may_write.wait()
        return dict.fromkeys(order.partitions, ErrorCode.NONE)


class Ids:
    def __init__(self) -> None:
        self.generated = 0

    async def generate(self) -> int:
        await trio.lowlevel.checkpoint()
        self.generated += 1
        return 1000 + self.generated


class Scene:
    def __init__(self, nursery: trio.Nursery) -> None:
        self.host = FakeHost(nursery, BrokerConfig({"broker.id": "1", "log.dirs": "/nowhere"}), FakeClock())
        self.partition = FakePartition(0, TRANSACTION_STATE_TOPIC_NAME)
        self.markers, self.ids = Markers(), Ids()
        metadata: Any = FakeMetadata()
        metadata.topics[TRANSACTION_STATE_TOPIC_NAME] = 1
        replicas: Any = SimpleNamespace(partition=lambda topic, index: self.partition)
        ids: Any = self.ids
        markers: Any = self.markers
        self.coordinators = TransactionCoordinators(self.host, metadata, replicas, ids, markers)

    async def lead(self, epoch: int) -> None:
        self.coordinators.on_elected(0, epoch)
        while self.coordinators.partitions.is_loading:
            await trio.lowlevel.checkpoint()

    async def open_transaction(self) -> InitResult:
        """Of `x`, with t-0."""
        result = await self.coordinators.init_producer_id(InitProducerId("x", 60_000))
        added = AddPartitions("x", result.producer_id, result.producer_epoch, frozenset((T0,)))
        assert await self.coordinators.add(added) is ErrorCode.NONE
        return result

    async def end(self, producer: InitResult) -> ErrorCode:
        end = EndTransaction("x", producer.producer_id, producer.producer_epoch, True)
        return (await self.coordinators.end(end)).error

    def state(self) -> str:
        return self.coordinators.describe("x").state


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with trio.open_nursery() as nursery:
        made = Scene(nursery)
        await made.lead(0)
        yield made
        nursery.cancel_scope.cancel()


async def test_a_transaction_is_complete_once_its_markers_are_written() -> None:
    async with scene() as made:
        producer = await made.open_transaction()
        assert await made.end(producer) is ErrorCode.NONE
        await trio.testing.wait_all_tasks_blocked()
        assert [(order.producer_id, order.committed, order.partitions) for order in made.markers.orders] == [
            (producer.producer_id, True, (T0,))
        ]
        assert made.state() == "PrepareCommit"
        made.markers.may_write.set()
        await trio.testing.wait_all_tasks_blocked()
        assert made.state() == "CompleteCommit"


async def test_markers_that_were_not_written_are_ordered_by_the_next_coordinator() -> None:
    async with scene() as made:
        await made.end(await made.open_transaction())
        await trio.testing.wait_all_tasks_blocked()
        made.coordinators.on_resigned(0, 1)
        made.markers.may_write.set()
        await made.lead(2)
        await trio.testing.wait_all_tasks_blocked()
        assert [order.coordinator_epoch for order in made.markers.orders] == [0, 2]
        assert made.state() == "CompleteCommit"


async def test_a_result_that_is_not_committed_is_not_given() -> None:
    async with scene() as made:
        made.partition.hold()
        results: list[InitResult] = []

        async def init() -> None:
            results.append(await made.coordinators.init_producer_id(InitProducerId("x", 60_000)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(init)
            await trio.testing.wait_all_tasks_blocked()
            assert (results, made.ids.generated) == ([], 1)
            made.partition.release()
        assert (results[0].error, results[0].producer_id) == (ErrorCode.NONE, 1001)


async def test_without_leadership_every_request_is_refused() -> None:
    async with scene() as made:
        producer = await made.open_transaction()
        made.coordinators.on_resigned(0, 1)
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.NOT_COORDINATOR):
            await made.end(producer)
        made.coordinators.stop()
        with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE):
            made.coordinators.describe("x")
