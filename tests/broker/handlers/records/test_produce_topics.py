"""Produce by topic ids (13): the same records as by names, and none for a topic that has another id."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.storage.batches import batch

UNKNOWN_ID = b"unknown topic id"
BY_ID = 13


def topic_data(topic_id: bytes, *indexes: int, sequence: int | None = None) -> ProduceRequest.TopicProduceData:
    fields = {} if sequence is None else {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}
    data = [ProduceRequest.PartitionProduceData(index=index, records=bytes(batch(b"a", **fields))) for index in indexes]
    return ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=data)


def produce(*topics: ProduceRequest.TopicProduceData, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=list(topics))


def codes(response: ProduceResponse) -> dict[tuple[bytes, int], ErrorCode]:
    return {
        (topic.topic_id, partition.index): ErrorCode(partition.error_code)
        for topic in response.responses
        for partition in topic.partition_responses
    }


def end(broker: Broker, topic: str, index: int = 0) -> int:
    return broker.replicas.hosted(topic, index).online_log().log_end_offset


async def create_again(broker: Broker, topic: str) -> bytes:
    await ask(broker, DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
    return await create_topic(broker, topic)


async def test_each_topic_has_its_own_result(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        one, other = await create_topic(broker, "one"), await create_topic(broker, "other")
        asked = produce(
            topic_data(one, 0, 1), topic_data(UNKNOWN_ID, 0, 3), topic_data(other, 0), topic_data(bytes(16), 0)
        )
        response = await ask(broker, asked, BY_ID)
        assert codes(response) == {
            (one, 0): ErrorCode.NONE,
            (one, 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (UNKNOWN_ID, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (UNKNOWN_ID, 3): ErrorCode.UNKNOWN_TOPIC_ID,
            (other, 0): ErrorCode.NONE,
            (bytes(16), 0): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        refused = response.responses[1].partition_responses[0]
        assert (refused.base_offset, refused.log_append_time_ms, refused.log_start_offset) == (-1, -1, -1)
        assert (end(broker, "one"), end(broker, "other")) == (1, 1)


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "with another topic"])
async def test_a_topic_that_was_created_again_takes_nothing_that_was_meant_for_the_one_before(
    tmp_path: Path, others: int
) -> None:
    """`others`: a request of two topics is never one that is handled without messages."""
    async with running_broker(tmp_path) as broker:
        old, other = await create_topic(broker, "t"), await create_topic(broker, "other")
        more = [topic_data(other, 0)] * others
        assert codes(await ask(broker, produce(topic_data(old, 0), *more), BY_ID))[old, 0] is ErrorCode.NONE
        new = await create_again(broker, "t")
        found = codes(await ask(broker, produce(topic_data(old, 0), *more), BY_ID))
        assert found[old, 0] is ErrorCode.UNKNOWN_TOPIC_ID
        assert end(broker, "t") == 0
        assert codes(await ask(broker, produce(topic_data(new, 0), *more), BY_ID))[new, 0] is ErrorCode.NONE


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "with another topic"])
async def test_a_partition_that_is_still_of_the_topic_before_takes_nothing(tmp_path: Path, others: int) -> None:
    """The metadata have the new topic already, the leader does not."""
    async with running_broker(tmp_path) as broker:
        topic_id, other = await create_topic(broker, "t"), await create_topic(broker, "other")
        more = [topic_data(other, 0)] * others
        partition = broker.replicas.hosted("t", 0)
        partition.topic_id = UNKNOWN_ID
        found = codes(await ask(broker, produce(topic_data(topic_id, 0), *more), BY_ID))
        assert found[topic_id, 0] is ErrorCode.UNKNOWN_TOPIC_ID
        partition.topic_id = bytes(16)  # of a topic that had no id
        found = codes(await ask(broker, produce(topic_data(topic_id, 0), *more), BY_ID))
        assert found[topic_id, 0] is ErrorCode.NONE


async def test_batches_behind_one_of_an_unknown_topic_wait_for_it(tmp_path: Path) -> None:
    """Else the first one that arrives after the metadata would begin the producer's sequence."""
    connection = PlainConnectionInfo(connection_id="one")
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        snapshot, hosted = broker.metadata.snapshot, dict(broker.replicas.topic_names)
        broker.metadata.snapshot = snapshot._replace(topic_names={})
        broker.replicas.topic_names.clear()

        async def send(sequence: int) -> ErrorCode:
            asked = produce(topic_data(topic_id, 0, sequence=sequence))
            return codes(await ask(broker, asked, BY_ID, connection=connection))[topic_id, 0]

        assert await send(0) is ErrorCode.UNKNOWN_TOPIC_ID
        broker.metadata.snapshot = snapshot
        broker.replicas.topic_names.update(hosted)
        assert await send(1) is ErrorCode.UNKNOWN_TOPIC_ID
        assert [await send(0), await send(1)] == [ErrorCode.NONE] * 2


async def test_a_leader_may_know_a_topic_before_its_metadata_have_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        broker.metadata.snapshot = broker.metadata.snapshot._replace(topic_names={})
        assert codes(await ask(broker, produce(topic_data(topic_id, 0)), BY_ID)) == {(topic_id, 0): ErrorCode.NONE}


async def test_an_unknown_id_needs_no_right(tmp_path: Path) -> None:
    """As in Kafka: whose topic it is no one knows."""
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        broker.authorizer = Denying({(Operation.WRITE, ResourceType.TOPIC, "t")})
        found = codes(await ask(broker, produce(topic_data(topic_id, 0), topic_data(UNKNOWN_ID, 0)), BY_ID))
        assert found == {
            (topic_id, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            (UNKNOWN_ID, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        }


async def test_without_a_response_an_unknown_id_ends_the_connection(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        with pytest.raises(ProtocolError, match="UNKNOWN_TOPIC_ID"):
            await ask(broker, produce(topic_data(UNKNOWN_ID, 0), acks=0), BY_ID)


async def test_of_two_batches_for_one_partition_the_last_is_appended(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        other = bytes(15) + b"1"
        asked = produce(
            topic_data(topic_id, 0), topic_data(UNKNOWN_ID, 0), topic_data(topic_id, 0), topic_data(other, 0)
        )
        assert codes(await ask(broker, asked, BY_ID)) == {
            (topic_id, 0): ErrorCode.NONE,
            (UNKNOWN_ID, 0): ErrorCode.UNKNOWN_TOPIC_ID,
            (other, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        assert end(broker, "t") == 1
