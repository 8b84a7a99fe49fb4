"""The high watermark of a leader that waits for a replica outside the ISR, and what ends that wait.

The record is on the leader and in the whole ISR (0 and 2). Broker 1 has asked to join, got the record's offset and is
silent. Each scenario ends the wait in another way, and that alone triggers the producer's response: no follower fetches
again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.replication.partition import Partition
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.leadership import TOPIC_ID, RefusingController, lead, update_metadata
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles

LAG_MAX_MS = 200_000


class HandMovedClock(Clock):
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def time_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return trio.current_time()


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
    """`acknowledged` is set by the response to the producer, which uses acks=all."""

    def __init__(self, broker: Broker, partition: Partition) -> None:
        self.broker = broker
        self.partition = partition
        self.acknowledged = trio.Event()

    async def produce(self) -> None:
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(batch(b"v")))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=3_600_000, topic_data=[topic])
        response = await ask(self.broker, request, 9)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        self.acknowledged.set()


@asynccontextmanager
async def scenario(
    controller: RefusingController, clock: HandMovedClock, within_s: float = 60.0
) -> AsyncIterator[Scenario]:
    """`within_s` is less than half of the time after which silence is noticed, except in the scenario of silence."""
    async with (
        running_broker(
            Path("/logs"), files=LossyFiles(), clock=clock, replica_lag_time_max_ms=str(LAG_MAX_MS)
        ) as broker,
        trio.open_nursery() as nursery,
    ):
        await update_metadata(broker, [0, 1, 2])
        play = Scenario(broker, await lead(broker, isr=[0, 2]))
        await follower_fetches(broker, 1, 0)
        await controller.is_asked.wait()
        await follower_fetches(broker, 2, 0)
        nursery.start_soon(play.produce)
        while play.partition.leader_log().log_end_offset == 0:
            await trio.lowlevel.checkpoint()
        await follower_fetches(broker, 2, 1)
        assert play.partition.high_watermark == 0, "1 may be in the ISR, or join it at any time"
        yield play
        with trio.fail_after(within_s):
            await play.acknowledged.wait()
        assert play.partition.high_watermark == 1


async def refusal_taken(partition: Partition) -> None:
    assert partition.leader is not None
    with trio.fail_after(60):
        while partition.leader.pending is not None:
            await trio.lowlevel.checkpoint()


async def test_the_controllers_refusal_of_a_dead_follower_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = RefusingController(monkeypatch)
    async with scenario(controller, HandMovedClock()) as play:
        await update_metadata(play.broker, [0, 2])
        assert play.partition.high_watermark == 0, "the controller may have let it in"
        controller.responds.set()


async def test_metadata_without_the_follower_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = RefusingController(monkeypatch)
    async with scenario(controller, HandMovedClock()) as play:
        controller.responds.set()
        await refusal_taken(play.partition)
        assert play.partition.high_watermark == 0, "it was caught up a moment ago, and is alive"
        await update_metadata(play.broker, [0, 2])


async def test_silence_of_the_follower_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    controller, clock = RefusingController(monkeypatch), HandMovedClock()
    async with scenario(controller, clock, LAG_MAX_MS / 1000) as play:
        controller.responds.set()
        await refusal_taken(play.partition)
        clock.ms += LAG_MAX_MS
        await trio.sleep(LAG_MAX_MS / 1000)
        assert play.partition.high_watermark == 0, "it may be behind for exactly this long"
        clock.ms += 1
