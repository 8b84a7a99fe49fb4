"""AddPartitionsToTxn: from producers and between brokers; one refused partition refuses them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.transactions import add_partitions_to_txn
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from tests.support.brokers.fake_broker import Denying, versions
from tests.support.brokers.running_broker import ask
from tests.support.brokers.transactional import Producer, fenced_producer, one_producer, transactional_broker

BETWEEN_BROKERS = 4
Codes = dict[tuple[str, int], int]


async def add(broker: Broker, producer: Producer, places: dict[str, list[int]], version: int, **flags: Any) -> Codes:
    """One transaction, as a producer or as a broker by the version."""
    topics = [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
        for name, indexes in places.items()
    ]
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(**producer.names, topics=topics, **flags)
    if version >= BETWEEN_BROKERS:
        response = await ask(broker, AddPartitionsToTxnRequest(transactions=[transaction]), version)
        assert response.error_code == ErrorCode.NONE
        (result,) = response.results_by_transaction
        assert result.transactional_id == producer.transactional_id
        return codes(result.topic_results)
    request = AddPartitionsToTxnRequest(
        **{f"v3_and_below_{name}": value for name, value in producer.names.items()}, v3_and_below_topics=topics
    )
    return codes((await ask(broker, request, version)).results_by_topic_v3_and_below)


def codes(topics: Any) -> Codes:
    return {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in topics
        for partition in topic.results_by_partition
    }


@pytest.mark.parametrize("version", versions(add_partitions_to_txn))
async def test_partitions_take_part(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await add(broker, producer, {"t": [0, 2]}, version) == {("t", 0): 0, ("t", 2): 0}
        assert broker.transactions.describe("x").partitions == (("t", 0), ("t", 2))


@pytest.mark.parametrize("version", versions(add_partitions_to_txn))
async def test_between_brokers_transactions_are_of_version_2(tmp_path: Path, version: int) -> None:
    """Only a leader that adds for a producer of version 2 does more than verify."""
    async with one_producer(tmp_path) as (broker, producer):
        await add(broker, producer, {"t": [0]}, version)
        transaction = broker.transactions.partitions.shard_for("x").machine.transactions["x"]
        assert transaction.current.version == (2 if version >= BETWEEN_BROKERS else 0)


@pytest.mark.parametrize("version", versions(add_partitions_to_txn))
async def test_one_refused_partition_refuses_them_all(tmp_path: Path, version: int) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        assert await add(broker, producer, {"t": [0, 9], "none": [0]}, version) == {
            ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert broker.transactions.describe("x").state == "Empty"


@pytest.mark.parametrize("version", versions(add_partitions_to_txn))
async def test_a_fenced_producer_receives_the_error_of_its_version(tmp_path: Path, version: int) -> None:
    async with fenced_producer(tmp_path) as (broker, zombie, _):
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await add(broker, zombie, {"t": [0]}, version) == {("t", 0): expected}


async def test_clients_may_not_touch_kafkas_own_topics_and_brokers_may(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        places = {"__consumer_offsets": [0]}
        assert await add(broker, producer, places, 3) == {
            ("__consumer_offsets", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
        assert await add(broker, producer, places, 4) == {("__consumer_offsets", 0): ErrorCode.NONE}


async def test_verification_adds_nothing(tmp_path: Path) -> None:
    async with one_producer(tmp_path, 0) as (broker, producer):
        assert await add(broker, producer, {"t": [0, 1]}, 5, verify_only=True) == {
            ("t", 0): ErrorCode.NONE,
            ("t", 1): ErrorCode.TRANSACTION_ABORTABLE,
        }
        assert broker.transactions.describe("x").partitions == (("t", 0),)


async def test_authorization(tmp_path: Path) -> None:
    async with one_producer(tmp_path) as (broker, producer):
        broker.authorizer = Denying(
            {
                (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "y"),
                (Operation.WRITE, ResourceType.TOPIC, "t"),
            }
        )
        assert await add(broker, producer, {"t": [0]}, 3) == {("t", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert await add(broker, Producer(broker, "y"), {"t": [0]}, 3) == {
            ("t", 0): ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        }
        # between brokers neither is looked at, but whether it is a broker
        assert await add(broker, producer, {"t": [0]}, 4) == {("t", 0): ErrorCode.NONE}
        broker.authorizer = Denying({(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)})
        response = await ask(broker, AddPartitionsToTxnRequest(), 4)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_the_coordinators_refusal_stands_at_every_partition(tmp_path: Path) -> None:
    async with transactional_broker(tmp_path) as broker:
        assert await add(broker, Producer(broker, ""), {"t": [0, 1]}, 3) == dict.fromkeys(
            [("t", 0), ("t", 1)], ErrorCode.INVALID_REQUEST
        )
        producer = Producer(broker)
        await producer.init()
        broker.transactions.stop()
        for version, flags in ((3, {}), (4, {}), (4, {"verify_only": True})):
            assert await add(broker, producer, {"t": [0]}, version, **flags) == {("t", 0): ErrorCode.NOT_COORDINATOR}
