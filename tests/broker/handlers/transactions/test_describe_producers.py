"""DescribeProducers: who has written, what is open, who is forgotten; topics that are not to be described."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_producers import DescribeProducersRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import Producer, completed, one_producer, transactional_broker


async def describe(broker: Broker, topic: str = "t", *indexes: int) -> list[Any]:
    wanted = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(indexes or (0,)))
    response = await ask(broker, DescribeProducersRequest(topics=[wanted]), 0)
    partitions: list[Any] = response.topics[0].partitions
    return partitions


async def test_a_producer_and_its_transaction(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        await producer.transact(b"a", b"b")
        await producer.add(0)
        await producer.write(b"open")
        opened, untouched = await describe(broker, "t", 0, 1)
        (state,) = opened.active_producers
        assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.epoch)
        assert (state.last_sequence, state.current_txn_start_offset, state.coordinator_epoch) == (2, 3, 0)
        assert untouched.active_producers == []
        await producer.end(True)
        await completed(broker)
        ((state,),) = [partition.active_producers for partition in await describe(broker)]
        assert state.current_txn_start_offset == -1


async def test_the_idle_are_forgotten_unless_they_have_something_open(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    keys: dict[str, Any] = {
        "producer_id_expiration_ms": "360000",
        "producer_id_expiration_check_interval_ms": "30000",
        "transaction_max_timeout_ms": "100000000",
    }
    async with transactional_broker(tmp_path, **keys) as broker:
        idle, opened = Producer(broker, "idle"), Producer(broker, "open", timeout_ms=100_000_000)
        for producer in (idle, opened):
            await producer.init()
            await producer.add(0)
            await producer.write(b"a")
        await idle.end(True)
        await trio.sleep(300)
        (partition,) = await describe(broker)
        assert len(partition.active_producers) == 2
        await trio.sleep(100)
        (partition,) = await describe(broker)
        assert [state.producer_id for state in partition.active_producers] == [opened.producer_id]


@pytest.mark.parametrize(("check_interval_ms", "listed_s", "gone_s"), [(500, 30, 90), (360_000, 180, 370)])
async def test_the_idle_are_forgotten_by_a_check_of_its_own(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, check_interval_ms: int, listed_s: int, gone_s: int
) -> None:
    keys: dict[str, Any] = {
        "producer_id_expiration_ms": "60000",
        "producer_id_expiration_check_interval_ms": str(check_interval_ms),
        "log_retention_check_interval_ms": str(30_000 if check_interval_ms > 30_000 else 86_400_000),
    }
    async with transactional_broker(tmp_path, **keys) as broker:
        producer = Producer(broker)
        await producer.init()
        await producer.transact(b"a")
        await completed(broker)
        wrote_s = trio.current_time()
        await trio.sleep_until(wrote_s + listed_s)
        (partition,) = await describe(broker)
        assert [state.producer_id for state in partition.active_producers] == [producer.producer_id]
        await trio.sleep_until(wrote_s + gone_s)
        (partition,) = await describe(broker)
        assert partition.active_producers == []


async def test_refusals(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        broker.authorizer = Denying({(Operation.READ, ResourceType.TOPIC, "secret")})
        for topic, index, expected in (
            ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("bad name", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("secret", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ):
            (partition,) = await describe(broker, topic, index)
            assert (partition.partition_index, partition.error_code) == (index, expected)
