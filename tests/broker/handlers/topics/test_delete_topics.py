"""DeleteTopics in every version, by name and by id."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.topics import delete_topics
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.support.brokers.control_broker import Denying, call, create, running_broker

ALL_VERSIONS = range(7)
State = DeleteTopicsRequest.DeleteTopicState


def by_name(version: int, *names: str) -> DeleteTopicsRequest:
    if version >= 6:
        return DeleteTopicsRequest(topics=[State(name=name) for name in names], timeout_ms=1000)
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)


def by_id(*ids: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[State(topic_id=topic_id) for topic_id in ids], timeout_ms=1000)


def outcome(response: DeleteTopicsResponse) -> list[tuple[str | None, ErrorCode]]:
    return [(result.name, ErrorCode(result.error_code)) for result in response.responses]


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_by_name(version: int) -> None:
    async with running_broker(topics={"a": 1, "b": 1}) as broker:
        response = await call(broker, delete_topics, by_name(version, "a", "nothing"), version)
        assert not broker.metadata.contains("a")
        assert broker.metadata.contains("b")
    assert outcome(response) == [("a", ErrorCode.NONE), ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


async def test_by_id() -> None:
    async with running_broker(topics={"a": 1}) as broker:
        topic_id = broker.metadata.topic_id("a")
        response = await call(broker, delete_topics, by_id(topic_id, b"?" * 16), 6)
        assert not broker.metadata.contains("a")
    assert outcome(response) == [("a", ErrorCode.NONE), (None, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert [result.topic_id for result in response.responses] == [topic_id, b"?" * 16]


async def test_name_and_id_together_are_refused() -> None:
    request = DeleteTopicsRequest(topics=[State(name="a", topic_id=b"?" * 16)], timeout_ms=1000)
    async with running_broker() as broker:
        response = await call(broker, delete_topics, request, 6)
    assert outcome(response) == [("a", ErrorCode.INVALID_REQUEST)]


async def test_what_one_may_not_delete() -> None:
    denying = Denying([(Operation.DELETE, ResourceType.TOPIC, "a")])
    async with running_broker(topics={"a": 1, "b": 1}) as broker:
        response = await call(broker, delete_topics, by_name(6, "a", "b"), 6, authorizer=denying)
        assert broker.metadata.contains("a")
    assert outcome(response) == [("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("b", ErrorCode.NONE)]


async def test_the_name_behind_an_id_is_hidden_from_a_client_that_may_not_describe_it() -> None:
    denying = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "a")])
    async with running_broker(topics={"a": 1}) as broker:
        request = by_id(broker.metadata.topic_id("a"))
        response = await call(broker, delete_topics, request, 6, authorizer=denying)
        assert broker.metadata.contains("a")
    assert outcome(response) == [(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_deletion_can_be_disabled(version: int) -> None:
    async with running_broker(delete_topic_enable="false") as broker:
        await create(broker, {"a": 1})
        response = await call(broker, delete_topics, by_name(version, "a"), version)
        assert broker.metadata.contains("a")
    code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert outcome(response) == [("a", code)]


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_only_the_controller_deletes(version: int) -> None:
    async with running_broker() as broker:
        broker.controller.machine.parts.active_controller_id = 7
        response = await call(broker, delete_topics, by_name(version, "a"), version)
    assert outcome(response) == [("a", ErrorCode.NOT_CONTROLLER)]
