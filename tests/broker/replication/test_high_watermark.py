"""The high watermark of a leader that waits for a replica outside the ISR, and what ends that wait.

The record is on the leader and in the whole ISR (0 and 2); 1 has asked to join, was told of the record and is
silent. Each scenario ends the wait in another way, and the producer is answered by that alone: no follower asks again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.peers.controller_channel import ControllerChannel
from kpybroker.broker.replication.partition import Partition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionResponse
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.batches import batch
from tests.support.lossy_files import LossyFiles
from tests.support.running_broker import ask, running_broker

LISR = LeaderAndIsrRequest
UPDATE = UpdateMetadataRequest
TOPIC_ID = b"t" * 16
CONTROLLER_EPOCH = 9
LAG_MAX_MS = 30_000


class HandMovedClock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def time_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return trio.current_time()


class Controller:
    """Answers every AlterPartition with INELIGIBLE_REPLICA, once it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked = trio.Event()
        self.answers = trio.Event()
        original = ControllerChannel.ask

        async def answer(channel: ControllerChannel, api_key: ApiKey, message: Any, version: int) -> Any:
            if api_key != ApiKey.ALTER_PARTITION:
                return await original(channel, api_key, message, version)
            self.is_asked.set()
            await self.answers.wait()
            refused = AlterPartitionResponse.PartitionData(partition_index=0, error_code=ErrorCode.INELIGIBLE_REPLICA)
            topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, topic_name="t", partitions=[refused])
            return AlterPartitionResponse(topics=[topic])

        monkeypatch.setattr(ControllerChannel, "ask", answer)


async def update_metadata(broker: Broker, alive: Sequence[int]) -> None:
    brokers = [
        UPDATE.UpdateMetadataBroker(
            id=node,
            endpoints=[UPDATE.UpdateMetadataEndpoint(port=9092 + node, host="127.0.0.1", listener="PLAINTEXT")],
        )
        for node in alive
    ]
    request = UPDATE(controller_epoch=CONTROLLER_EPOCH, broker_epoch=broker.broker_epoch, live_brokers=brokers)
    response = await ask(broker, request, 8)
    assert response.error_code == ErrorCode.NONE


async def lead(broker: Broker) -> Partition:
    state = LISR.LeaderAndIsrPartitionState(
        partition_index=0, leader=0, leader_epoch=0, isr=[0, 2], replicas=[0, 1, 2], is_new=True
    )
    topic = LISR.LeaderAndIsrTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    request = LISR(controller_epoch=CONTROLLER_EPOCH, broker_epoch=broker.broker_epoch, topic_states=[topic])
    response = await ask(broker, request, 7)
    assert response.error_code == ErrorCode.NONE
    (partition,) = [partition for partition in broker.replicas if partition.topic == "t"]
    return partition


async def follower_fetches(broker: Broker, replica_id: int, offset: int) -> None:
    partition = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=0, log_start_offset=0, partition_max_bytes=1_000_000
    )
    topic = FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])
    replica = FetchRequest.ReplicaState(replica_id=replica_id)
    request = FetchRequest(replica_state=replica, max_wait_ms=0, max_bytes=1_000_000, topics=[topic])
    response = await ask(broker, request, 17)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NONE


class Scenario:
    """`acknowledged` is set by the answer to the producer, which asked for all of the ISR."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        self.broker = broker
        self.partition = partition
        self.acknowledged = trio.Event()

    async def produce(self) -> None:
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch(b"v")))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=3_600_000, topic_data=[topic])
        answer = await ask(self.broker, request, 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        self.acknowledged.set()


@asynccontextmanager
async def scenario(controller: Controller, clock: HandMovedClock, within_s: float = 5.0) -> AsyncIterator[Scenario]:
    """`within_s` is less than half of the time after which silence is noticed, but for the scenario of silence."""
    async with (
        running_broker(
            Path("/logs"), files=LossyFiles(), clock=clock, replica_lag_time_max_ms=str(LAG_MAX_MS)
        ) as broker,
        trio.open_nursery() as nursery,
    ):
        await update_metadata(broker, [0, 1, 2])
        told = Scenario(broker, await lead(broker))
        await follower_fetches(broker, 1, 0)
        await controller.is_asked.wait()
        await follower_fetches(broker, 2, 0)
        nursery.start_soon(told.produce)
        while told.partition.leader_log().log_end_offset == 0:
            await trio.lowlevel.checkpoint()
        await follower_fetches(broker, 2, 1)
        assert told.partition.high_watermark == 0, "1 may be in the ISR, or come into it at any time"
        yield told
        with trio.fail_after(within_s):
            await told.acknowledged.wait()
        assert told.partition.high_watermark == 1


async def refusal_taken(partition: Partition) -> None:
    assert partition.leader is not None
    with trio.fail_after(10):
        while partition.leader.pending is not None:
            await trio.lowlevel.checkpoint()


async def test_the_controllers_refusal_of_a_dead_one_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller(monkeypatch)
    async with scenario(controller, HandMovedClock()) as told:
        await update_metadata(told.broker, [0, 2])
        assert told.partition.high_watermark == 0, "the controller may have let it in"
        controller.answers.set()


async def test_the_news_of_its_death_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller(monkeypatch)
    async with scenario(controller, HandMovedClock()) as told:
        controller.answers.set()
        await refusal_taken(told.partition)
        assert told.partition.high_watermark == 0, "it was caught up a moment ago, and lives"
        await update_metadata(told.broker, [0, 2])


async def test_its_silence_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    controller, clock = Controller(monkeypatch), HandMovedClock()
    async with scenario(controller, clock, LAG_MAX_MS / 1000) as told:
        controller.answers.set()
        await refusal_taken(told.partition)
        clock.ms += LAG_MAX_MS
        await trio.sleep(LAG_MAX_MS / 1000)
        assert told.partition.high_watermark == 0, "not longer than it may be"
        clock.ms += 1
