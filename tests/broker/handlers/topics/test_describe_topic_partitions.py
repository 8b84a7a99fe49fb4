"""DescribeTopicPartitions: pages that together are everything, once."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.topics import describe_topic_partitions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tests.support.brokers.control_broker import ControlBroker, Denying, call, create, running_broker

Cursor = DescribeTopicPartitionsRequest.Cursor


def request(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


async def pages(broker: ControlBroker, limit: int) -> list[tuple[str | None, int]]:
    """Everything, page after page."""
    found: list[tuple[str | None, int]] = []
    cursor: Cursor | None = None
    while True:
        response: DescribeTopicPartitionsResponse = await call(
            broker, describe_topic_partitions, request(limit=limit, cursor=cursor), 0
        )
        page = [(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions]
        assert len(page) <= limit
        found += page
        if response.next_cursor is None:
            return found
        cursor = Cursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 100])
async def test_pages_add_up(limit: int) -> None:
    async with running_broker(topics={"b": 3, "a": 1, "c": 2}) as broker:
        assert await pages(broker, limit) == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]


async def test_one_topic_in_full() -> None:
    async with running_broker(topics={"a": 1}) as broker:
        topic_id = broker.metadata.topic_id("a")
        response = await call(broker, describe_topic_partitions, request("a"), 0)
    (topic,) = response.topics
    assert (topic.topic_id, topic.error_code, topic.is_internal) == (topic_id, 0, False)
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes, partition.isr_nodes) == (
        0,
        0,
        [0],
        [0],
    )
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert topic.topic_authorized_operations == sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))


async def test_unknown_bad_and_forbidden_topics() -> None:
    denying = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "secret")])
    async with running_broker(topics={"a": 1, "secret": 1}) as broker:
        asked = request("a", "secret", "nothing", "b d")
        response = await call(broker, describe_topic_partitions, asked, 0, authorizer=denying)
        everything = await call(broker, describe_topic_partitions, request(), 0, authorizer=denying)
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "a": ErrorCode.NONE,
        "b d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "nothing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    assert [topic.name for topic in everything.topics] == ["a"]


@pytest.mark.parametrize(
    "cursor", [Cursor(topic_name="b", partition_index=0), Cursor(topic_name="a", partition_index=-1)]
)
async def test_cursors_that_cannot_be(cursor: Cursor) -> None:
    async with running_broker(topics={"a": 1, "b": 1}) as broker:
        response = await call(broker, describe_topic_partitions, request("a", cursor=cursor), 0)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


async def test_the_brokers_own_limit_holds() -> None:
    async with running_broker(max_request_partition_size_limit="2") as broker:
        await create(broker, {"a": 5})
        response = await call(broker, describe_topic_partitions, request(), 0)
    assert len(response.topics[0].partitions) == 2
    assert response.next_cursor is not None
