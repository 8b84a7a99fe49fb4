"""Faults of fetches that name their partitions by a session (KIP-227): the session goes on, and heals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.batch import iter_batches
from tests.support.brokers.faulty_broker import Faulty, faulty_broker
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.storage.batches import batch

BUSY = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Consumer:
    """Fetches both partitions of `orders` in one session, as a client does: each request names what has changed."""

    def __init__(self, faulty: Faulty, version: int, topic_id: bytes) -> None:
        self.faulty = faulty
        self.version = version
        self.topic: dict[str, Any] = {"topic_id": topic_id} if version >= 13 else {"topic": "orders"}
        self.offsets = {0: 0, 1: 0}
        self.changed = {0, 1}
        self.session_id = self.epoch = 0
        self.connection = PlainConnectionInfo()

    async def fetch(self, **fields: Any) -> dict[int, Any]:
        """The partitions that the response names."""
        partitions = [
            FetchRequest.FetchPartition(partition=index, fetch_offset=self.offsets[index], partition_max_bytes=9999)
            for index in sorted(self.changed)
        ]
        request = FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            max_bytes=9999,
            topics=[FetchRequest.FetchTopic(partitions=partitions, **self.topic)] if partitions else [],
            **fields,
        )
        response = await ask(self.faulty.broker, request, self.version, connection=self.connection)
        assert response.error_code == 0
        self.session_id, self.epoch = response.session_id, self.epoch + 1
        found = {one.partition_index: one for topic in response.responses for one in topic.partitions}
        self.changed = {index for index, one in found.items() if one.records}
        for index in self.changed:
            *_, (_, last) = iter_batches(found[index].records)
            self.offsets[index] = last.next_offset
        return found


async def produce(faulty: Faulty, index: int) -> None:
    data = ProduceRequest.PartitionProduceData(index=index, records=batch(b"value"))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    await ask(faulty.broker, ProduceRequest(acks=1, topic_data=[topic]), 9)


@pytest.mark.parametrize("version", [7, 12, 13, 17])
async def test_an_error_reaches_a_partition_that_only_the_session_names(tmp_path: Path, version: int) -> None:
    async with faulty_broker(tmp_path) as faulty:
        consumer = Consumer(faulty, version, await create_topic(faulty.broker, "orders", partitions=2))
        assert set(await consumer.fetch()) == {0, 1}
        assert await consumer.fetch() == {}
        fault = faulty.add({"error": BUSY.name}, {"times": 2}, api="Fetch", topic="orders", partition=1)
        for _ in range(2):
            found = await consumer.fetch(max_wait_ms=600_000, min_bytes=1)  # an error does not wait
            assert {index: one.error_code for index, one in found.items()} == {1: BUSY}
            assert found[1].high_watermark == -1
        assert fault.is_over
        healed = await consumer.fetch()
        assert {index: (one.error_code, one.high_watermark) for index, one in healed.items()} == {1: (0, 0)}
        assert await consumer.fetch() == {}


@pytest.mark.parametrize("version", [7, 13])
async def test_no_record_is_lost_by_an_error(tmp_path: Path, version: int) -> None:
    async with faulty_broker(tmp_path) as faulty:
        consumer = Consumer(faulty, version, await create_topic(faulty.broker, "orders", partitions=2))
        faulty.add({"error": BUSY.name}, {"nth": 1}, api="Fetch", partition=1)
        faulty.add({"error": BUSY.name}, {"nth": 3}, api="Fetch", partition=1)
        await produce(faulty, 1)
        for _ in range(3):
            await produce(faulty, 0)
            await produce(faulty, 1)
        for _ in range(6):
            await consumer.fetch()
        assert (consumer.session_id != 0, consumer.epoch) == (True, 6)
        assert consumer.offsets == {0: 3, 1: 4}
        assert await consumer.fetch() == {}


async def test_a_forgotten_partition_is_not_matched(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty:
        consumer = Consumer(faulty, 12, await create_topic(faulty.broker, "orders", partitions=2))
        await consumer.fetch()
        fault = faulty.add({"observe": True}, api="Fetch", partition=1)
        await consumer.fetch()
        assert fault.hits.count == 1
        await consumer.fetch(forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="orders", partitions=[1])])
        await consumer.fetch()
        assert fault.hits.count == 1


async def test_a_request_whose_session_is_gone_gets_the_brokers_own_error(tmp_path: Path) -> None:
    async with faulty_broker(tmp_path) as faulty:
        await create_topic(faulty.broker, "orders", partitions=2)
        faulty.add({"error": BUSY.name}, api="Fetch")
        request = FetchRequest(session_id=77, session_epoch=3, max_bytes=999)
        response = await ask(faulty.broker, request, 12)
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
