"""A batch that is sent again while the ISR is too small: it is recognised, and acknowledged once it is committed."""

from __future__ import annotations

from pathlib import Path

import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.support.brokers.leadership import TOPIC_ID, order
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.storage.batches import batch
from tests.support.storage.lossy_files import LossyFiles

WRITTEN = batch(b"v", producer_id=7, producer_epoch=0, base_sequence=0)
NEXT = batch(b"w", producer_id=7, producer_epoch=0, base_sequence=1)


async def lead(broker: Broker, isr: list[int], epoch: int) -> None:
    await order(broker, 0, epoch, isr)


async def follower_has(broker: Broker, offset: int, epoch: int) -> None:
    place = FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, log_start_offset=0, partition_max_bytes=1_000_000
    )
    replica = FetchRequest.ReplicaState(replica_id=1)
    topics = [FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[place])]
    request = FetchRequest(replica_state=replica, max_wait_ms=0, max_bytes=1_000_000, topics=topics)
    assert (await ask(broker, request, 17)).responses[0].partitions[0].error_code == ErrorCode.NONE


async def produce(broker: Broker, records: bytearray, acks: int = -1) -> ProduceResponse.PartitionProduceResponse:
    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    response = await ask(broker, ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic]), 9)
    found: ProduceResponse.PartitionProduceResponse = response.responses[0].partition_responses[0]
    return found


async def test_a_batch_that_is_in_the_log_is_not_refused_for_the_isr(autojump_clock: trio.testing.MockClock) -> None:
    async with running_broker(Path("/logs"), files=LossyFiles(), min_insync_replicas="2") as broker:
        await lead(broker, [0, 1], 0)
        assert (await produce(broker, WRITTEN, acks=1)).base_offset == 0
        await lead(broker, [0], 1)
        assert (await produce(broker, WRITTEN)).error_code == ErrorCode.REQUEST_TIMED_OUT, "there, and not committed"
        assert (await produce(broker, NEXT)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        other = batch(b"x", producer_id=8, producer_epoch=0, base_sequence=0)
        assert (await produce(broker, other)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await produce(broker, WRITTEN + WRITTEN)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        await lead(broker, [0, 1], 2)
        await follower_has(broker, 1, 2)
        await lead(broker, [0], 3)
        again = await produce(broker, WRITTEN)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0), "it is committed"
        damaged = bytearray(WRITTEN)
        damaged[-1] ^= 1
        assert (await produce(broker, damaged)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert broker.replicas.hosted("t", 0).online_log().log_end_offset == 1
