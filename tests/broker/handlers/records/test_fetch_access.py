"""Fetch with ACLs: a change counts at the next request of a session, also for a partition where nothing is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.security.acls import Binding, Entry, EntryFilter, Filter, Pattern, PatternFilter, Permission
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.fetch import FetchRequest
from tests.support.brokers.running_broker import ask, running_broker

TOPIC = "orders"
VERSION = 12
READ = Binding(Pattern(ResourceType.TOPIC, TOPIC), Entry("User:ANONYMOUS", "*", Operation.READ, Permission.ALLOW))


async def fetch(
    broker: Broker, session_id: int, epoch: int, *, names: bool = False, topic: str = TOPIC, version: int = VERSION
) -> tuple[int, dict[int, int]]:
    """The session's id, and the error of each partition that the response names."""
    partitions = [FetchRequest.FetchPartition(partition=index, partition_max_bytes=1000) for index in (0, 1)]
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=partitions)] if names else []
    request = FetchRequest(
        max_wait_ms=0, max_bytes=1000, session_id=session_id, session_epoch=epoch, topics=topics, replica_id=-1
    )
    response = await ask(broker, request, version)
    assert response.error_code == ErrorCode.NONE
    found = {one.partition_index: one.error_code for topic in response.responses for one in topic.partitions}
    return response.session_id, found


async def test_a_session_feels_a_change_at_its_next_request(tmp_path: Path) -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    name = "kafka.security.authorizer.AclAuthorizer"
    async with running_broker(tmp_path, authorizer_class_name=name) as broker:
        assert broker.acls is not None
        await broker.topics.create_topics([NewTopic(TOPIC, 2, 1)], 10_000)
        await broker.acls.create([READ])
        session, found = await fetch(broker, 0, 0, names=True)
        assert set(found.values()) == {ErrorCode.NONE}
        assert await fetch(broker, session, 1) == (session, {})  # nothing is new
        everything = Filter(PatternFilter(), EntryFilter())
        await broker.acls.delete([everything])
        assert await fetch(broker, session, 2) == (session, dict.fromkeys(found, denied))
        assert await fetch(broker, session, 3) == (session, dict.fromkeys(found, denied))
        await broker.acls.create([READ])
        assert await fetch(broker, session, 4) == (session, dict.fromkeys(found, ErrorCode.NONE))
        assert await fetch(broker, session, 5) == (session, {})


@pytest.mark.parametrize("version", [4, VERSION])
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"authorizer_class_name": "kafka.security.authorizer.AclAuthorizer"}, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
async def test_an_empty_name_is_a_name_that_no_topic_has(
    tmp_path: Path, version: int, changes: dict[str, Any], error: ErrorCode
) -> None:
    async with running_broker(tmp_path, **changes) as broker:
        _, found = await fetch(broker, 0, 0, names=True, topic="", version=version)
        assert found == {0: error, 1: error}
