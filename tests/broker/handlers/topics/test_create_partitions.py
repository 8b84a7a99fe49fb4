"""CreatePartitions in every version."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.topics import create_partitions
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from tests.support.brokers.control_broker import Denying, call, running_broker

Topic = CreatePartitionsRequest.CreatePartitionsTopic


def grow(*wanted: tuple[str, int], validate_only: bool = False) -> CreatePartitionsRequest:
    topics = [Topic(name=name, count=count, assignments=None) for name, count in wanted]
    return CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)


def outcome(response: CreatePartitionsResponse) -> dict[str, tuple[ErrorCode, str | None]]:
    return {result.name: (ErrorCode(result.error_code), result.error_message) for result in response.results}


@pytest.mark.parametrize("version", range(4))
async def test_growth_and_refusals_side_by_side(version: int) -> None:
    async with running_broker(topics={"a": 1, "b": 1}) as broker:
        response = await call(broker, create_partitions, grow(("a", 3), ("b", 1), ("c", 2)), version)
        assert broker.metadata.partition_count("a") == 3
    assert outcome(response) == {
        "a": (ErrorCode.NONE, None),
        "b": (ErrorCode.INVALID_PARTITIONS, "Topic already has 1 partitions."),
        "c": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'c' does not exist."),
    }


async def test_by_hand() -> None:
    assignment = CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=[0])
    request = CreatePartitionsRequest(topics=[Topic(name="a", count=2, assignments=[assignment])], timeout_ms=1000)
    async with running_broker(topics={"a": 1}) as broker:
        assert outcome(await call(broker, create_partitions, request, 3)) == {"a": (ErrorCode.NONE, None)}
        assert broker.metadata.leader_and_epoch("a", 1) == (0, 0)


async def test_validate_only() -> None:
    async with running_broker(topics={"a": 1}) as broker:
        response = await call(broker, create_partitions, grow(("a", 3), validate_only=True), 3)
        assert broker.metadata.partition_count("a") == 1
    assert outcome(response) == {"a": (ErrorCode.NONE, None)}


async def test_named_twice_not_allowed_and_queued_for_deletion() -> None:
    denying = Denying([(Operation.ALTER, ResourceType.TOPIC, "b")])
    async with running_broker(topics={"a": 1, "b": 1, "c": 1}) as broker:
        broker.controller.machine.parts.context.topics_to_be_deleted.add("c")
        request = grow(("a", 2), ("a", 3), ("b", 2), ("c", 2))
        response = await call(broker, create_partitions, request, 3, authorizer=denying)
    assert outcome(response) == {
        "a": (ErrorCode.INVALID_REQUEST, "Duplicate topic in request."),
        "b": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed."),
        "c": (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion."),
    }


async def test_only_the_controller_grows_topics() -> None:
    async with running_broker() as broker:
        broker.controller.machine.parts.active_controller_id = 7
        response = await call(broker, create_partitions, grow(("a", 2)), 3)
    assert outcome(response) == {"a": (ErrorCode.NOT_CONTROLLER, None)}
