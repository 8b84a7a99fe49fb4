"""A whole broker with transactions, on a clock of its own, and a producer that speaks the bare protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.coordinators.transaction_verification import TransactionProducer
from kpybroker.broker.handlers.transactions.end_txn import EPOCH_BUMPED_FROM
from kpybroker.core.transaction.values import WriteMarkers
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kpybroker.wire.messages.end_txn import EndTxnRequest
from kpybroker.wire.messages.fetch import FetchRequest, FetchResponse
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records
from tests.support.brokers.fake_broker import FakeClock
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.storage.batches import batch

Partition = tuple[str, int]


@asynccontextmanager
async def transactional_broker(directory: Path, *, keeps: bool = False, **keys: Any) -> AsyncIterator[Broker]:
    """Topic t with three partitions; coordinators of both kinds are there.

    With `keeps` the directory has all that a broker needs to start again; without, no clock can outrun a disk.
    """
    quick = {
        "transaction_state_log_replication_factor": "1",
        "transaction_state_log_min_isr": "1",
        "transaction_state_log_num_partitions": "2",
    }
    clock = FakeClock()
    async with running_broker(directory, clock=clock, tree_clock=clock, keeps=keeps, **(quick | keys)) as broker:
        if not broker.metadata.contains("t"):
            await create_topic(broker, "t", 3)
        for kind in (0, 1):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
            found = await ask(broker, request, 4)
            assert found.coordinators[0].error_code == ErrorCode.NONE
        await loaded(broker)
        yield broker


@asynccontextmanager
async def one_producer(directory: Path, *added: int, **keys: Any) -> AsyncIterator[tuple[Broker, Producer]]:
    """The broker and a producer with its id, in a transaction if partitions of t are `added` to it."""
    async with transactional_broker(directory, **keys) as broker:
        producer = Producer(broker)
        await producer.init()
        if added:
            await producer.add(*added)
        yield broker, producer


@asynccontextmanager
async def fenced_producer(directory: Path) -> AsyncIterator[tuple[Broker, Producer, Producer]]:
    """The broker, a producer that is fenced, and the one that fenced it."""
    async with one_producer(directory) as (broker, zombie):
        successor = Producer(broker)
        await successor.init()
        yield broker, zombie, successor


async def loaded(broker: Broker) -> None:
    while broker.transactions.partitions.is_loading or broker.groups.partitions.is_loading:
        await trio.lowlevel.checkpoint()


class Producer:
    """One transactional producer. Its methods return the error of the response, NONE if there is none."""

    def __init__(self, broker: Broker, transactional_id: str = "x", timeout_ms: int = 60_000) -> None:
        self.broker = broker
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[Partition, int] = {}

    @property
    def names(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    async def init(self, *, claims: bool = False, version: int = 4) -> ErrorCode:
        """InitProducerId, repeated until the transaction before is complete."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=self.producer_id if claims else -1,
            producer_epoch=self.epoch if claims else -1,
        )
        while True:
            response = await ask(self.broker, request, version)
            if response.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            await trio.lowlevel.checkpoint()
        if response.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch, self.sequences = response.producer_id, response.producer_epoch, {}
        return ErrorCode(response.error_code)

    async def add(self, *indexes: int, topic: str = "t", version: int = 3) -> ErrorCode:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        response = await ask(self.broker, request, version)
        codes = {
            result.partition_error_code
            for named in response.results_by_topic_v3_and_below
            for result in named.results_by_partition
        }
        (code,) = codes
        return ErrorCode(code)

    async def write(self, *values: bytes, index: int = 0, version: int = 9, topic: str = "t") -> ErrorCode:
        sequence = self.sequences.get((topic, index), 0)
        records = batch(
            *values,
            timestamp=self.broker.clock.time_ms(),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = ProduceRequest.PartitionProduceData(index=index, records=bytes(records))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic, topic_id=self.broker.metadata.topic_id(topic), partition_data=[data]
                )
            ],
        )
        response = await ask(self.broker, request, version)
        code = ErrorCode(response.responses[0].partition_responses[0].error_code)
        if code is ErrorCode.NONE:
            self.sequences[topic, index] = sequence + len(values)
        return code

    async def add_offsets(self, group: str = "g", version: int = 3) -> ErrorCode:
        response = await ask(self.broker, AddOffsetsToTxnRequest(**self.names, group_id=group), version)
        return ErrorCode(response.error_code)

    async def commit_offset(self, offset: int, group: str = "g", version: int = 3, **fields: Any) -> ErrorCode:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])]
        request = TxnOffsetCommitRequest(**self.names, group_id=group, topics=topics, **fields)
        response = await ask(self.broker, request, version)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def end(self, committed: bool, version: int = 3) -> ErrorCode:
        response = await ask(self.broker, EndTxnRequest(**self.names, committed=committed), version)
        if response.error_code == ErrorCode.NONE and version >= EPOCH_BUMPED_FROM:
            self.producer_id, self.epoch, self.sequences = response.producer_id, response.producer_epoch, {}
        return ErrorCode(response.error_code)

    async def transact(self, *values: bytes, committed: bool = True, index: int = 0) -> None:
        """A whole transaction, until it is complete."""
        assert await self.add(index) is ErrorCode.NONE
        assert await self.write(*values, index=index) is ErrorCode.NONE
        assert await self.end(committed) is ErrorCode.NONE
        await completed(self.broker, self.transactional_id)


async def completed(broker: Broker, transactional_id: str = "x") -> str:
    """Wait until the transaction is complete; its final state."""
    while (state := broker.transactions.describe(transactional_id).state).startswith("Prepare"):
        await trio.lowlevel.checkpoint()
    return state


def named(producer: Producer) -> TransactionProducer:
    """As the coordinator is asked about it."""
    return TransactionProducer(producer.transactional_id, producer.producer_id, producer.epoch)


def coordinated_by(broker: Broker, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions are coordinated by another broker, which is alive."""
    known, alive = broker.metadata.leader_and_epoch, broker.metadata.is_alive
    monkeypatch.setattr(
        broker.metadata,
        "leader_and_epoch",
        lambda topic, index: (other, 0) if topic == "__transaction_state" else known(topic, index),
    )
    monkeypatch.setattr(broker.metadata, "is_alive", lambda broker_id: broker_id == other or alive(broker_id))


def held_markers(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """No marker is written before the event."""
    write: Callable[[WriteMarkers], Awaitable[Any]] = broker.markers.write
    released = trio.Event()

    async def write_later(order: WriteMarkers) -> Any:
        await released.wait()
        return await write(order)

    monkeypatch.setattr(broker.markers, "write", write_later)
    return released


async def fetched(
    broker: Broker, *, committed: bool = True, index: int = 0, offset: int = 0
) -> FetchResponse.PartitionData:
    partition = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1_000_000)
    request = FetchRequest(
        isolation_level=int(committed),
        max_bytes=1_000_000,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
        session_epoch=-1,
    )
    response = await ask(broker, request, 11)
    data: FetchResponse.PartitionData = response.responses[0].partitions[0]
    return data


async def read(broker: Broker, *, index: int = 0) -> list[bytes]:
    """The values that a read_committed consumer sees, filtered as ``FetchedRecords`` of the Java client does."""
    data = await fetched(broker, index=index)
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    ignored: set[int] = set()
    values: list[bytes] = []
    buffer = bytes(data.records or b"")
    for position, header in iter_batches(buffer):
        while aborted and aborted[0][0] <= header.last_offset:
            ignored.add(aborted.pop(0)[1])
        if header.is_control:
            ignored.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in ignored):
            values += [record.value or b"" for record in iter_records(buffer, header, position)]
    return values
