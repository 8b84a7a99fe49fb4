"""What is counted of each topic, through a running broker."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.replication.traffic import TopicTraffic, Traffic
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.storage.batches import batch


def produce(topic: str, records: bytes | bytearray, acks: int = 1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(bytearray(records)))
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def fetch(topic: str, replica_id: int = -1, topic_id: bytes = ZERO_UUID) -> FetchRequest:
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=[wanted])]
    return FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1, topics=topics
    )


def counts(broker: Broker, topic: str) -> tuple[int, int, int, int, int]:
    t = broker.replicas.traffic.topics[topic]
    return t.bytes_in, t.messages_in, t.produce_requests, t.bytes_out, t.fetch_requests


@pytest.mark.parametrize("shortcuts", ["all", "none"])
async def test_appends_and_reads_count_for_their_topic(tmp_path: Path, shortcuts: str) -> None:
    records = batch(b"one", b"two")
    async with running_broker(tmp_path, topics=["t", "idle"], kpybroker_shortcuts=shortcuts) as broker:
        for acks in (1, -1):
            assert (await ask(broker, produce("t", records, acks), 9)).responses[0].partition_responses[
                0
            ].error_code == 0
        response = await ask(broker, fetch("t"), 12)
        size = len(response.responses[0].partitions[0].records)
        assert size == 2 * len(records)
        assert counts(broker, "t") == (size, 4, 2, size, 1)
        assert broker.replicas.traffic.topics["idle"].is_idle
        assert broker.replicas.traffic.replication_bytes_out == 0


@pytest.mark.parametrize("version", [13, 18])
async def test_a_fetch_by_id_counts_for_the_topic_that_has_it(tmp_path: Path, version: int) -> None:
    """An id that the topic had before it was made again counts for no topic."""
    records = batch(b"one", b"two")
    async with running_broker(tmp_path) as broker:
        old = await create_topic(broker, "t")
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
        new = await create_topic(broker, "t")
        await ask(broker, produce("t", records), 9)
        for topic_id, code, counted in ((old, ErrorCode.UNKNOWN_TOPIC_ID, (0, 0)), (new, 0, (len(records), 1))):
            response = await ask(broker, fetch("", topic_id=topic_id), version)
            assert response.responses[0].partitions[0].error_code == code
            assert counts(broker, "t")[3:] == counted


@pytest.mark.parametrize("version", [0, 2])
async def test_a_produce_without_a_batch_is_no_message_and_no_conversion(tmp_path: Path, version: int) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        response = await ask(broker, produce("t", b""), version)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert counts(broker, "t") == (0, 0, 1, 0, 0)
        assert broker.replicas.traffic.topics["t"].rare is None


async def test_what_is_refused_counts_by_its_cause(tmp_path: Path) -> None:
    records = batch(b"one", b"two")
    async with running_broker(tmp_path) as broker:
        await create_topic(broker, "small", max_message_bytes="10")
        await create_topic(broker, "strict", cleanup_policy="compact")
        await ask(broker, produce("small", records), 9)
        await ask(broker, produce("strict", records), 9)
        damaged = bytearray(records)
        damaged[-1] ^= 1
        await ask(broker, produce("strict", bytes(damaged)), 9)
        small, strict = (broker.replicas.traffic.topics[name] for name in ("small", "strict"))
        assert (small.produce_requests, small.bytes_in, small.rare_counts().bytes_rejected) == (1, 0, len(records))
        assert small.rare_counts().failed_produce_requests == 0
        assert (strict.rare_counts().failed_produce_requests, strict.rare_counts().invalid_crc) == (1, 1)


async def test_a_deleted_topic_stays_in_the_sum(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await ask(broker, produce("t", batch(b"one")), 9)
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
        assert broker.replicas.traffic.topics == {}
        assert broker.replicas.traffic.removed.messages_in == 1


def test_the_last_partition_ends_a_topic() -> None:
    traffic = Traffic()
    first, second = traffic.host("t"), traffic.host("t")
    assert first is second
    first.bytes_in += 7
    first.fetch_failed(ErrorCode.OFFSET_OUT_OF_RANGE)
    first.fetch_failed(ErrorCode.UNKNOWN_SERVER_ERROR)
    traffic.drop("t")
    assert traffic.topics == {"t": first}
    traffic.drop("t")
    assert traffic.topics == {}
    assert traffic.removed.bytes_in == 7
    assert traffic.removed.rare_counts().failed_fetch_requests == 1


def test_changes_of_the_isr_count_by_their_direction() -> None:
    traffic = Traffic()
    traffic.isr_changed({1, 2, 3}, {1, 2})
    traffic.isr_changed({1}, {1, 2})
    traffic.isr_changed({1, 2}, {1, 3})
    assert (traffic.isr_shrinks, traffic.isr_expands) == (1, 1)


def test_an_idle_topic_costs_less_than_100_bytes_and_its_name() -> None:
    assert sys.getsizeof(TopicTraffic()) < 100


def test_an_idle_topic_of_one_partition_costs_less_than_200_bytes() -> None:
    traffic, count = Traffic(), 10_000
    names = [f"topic-{number}" for number in range(count)]
    tracemalloc.start()
    try:
        for name in names:
            traffic.host(name)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used <= 200 * count
