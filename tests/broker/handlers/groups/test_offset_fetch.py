"""OffsetFetch: versions, where errors stand in them, several groups, the tree in version 0."""

from __future__ import annotations

from typing import Any

import pytest

from kpybroker.broker.handlers.groups import offset_commit, offset_fetch
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import CommitOffsets
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from tests.broker.handlers.groups.group_scenarios import commit, commit_request
from tests.support.brokers.fake_broker import (
    FakeBroker,
    call,
    fake_broker,
    memory_tree,
    topic_id_of,
    topic_of,
    versions,
)

Offsets = dict[tuple[str, int], tuple[int, int]]


def rows(topics: Any) -> Offsets:
    """(topic, partition) -> (offset, error)."""
    return {(topic_of(t), p.partition_index): (p.committed_offset, p.error_code) for t in topics for p in t.partitions}


async def fetch(broker: FakeBroker, version: int, wanted: dict[str, list[int]] | None, **fields: Any) -> Any:
    """One group's response: (error on top, topics)."""
    if version >= 8:
        topics = _topics(OffsetFetchRequest.OffsetFetchRequestTopics, wanted)
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=fields.pop("group_id", "g"), topics=topics)
        response = await call(broker, offset_fetch, OffsetFetchRequest(groups=[group], **fields), version)
        return response.groups[0].error_code, response.groups[0].topics
    topics = _topics(OffsetFetchRequest.OffsetFetchRequestTopic, wanted)
    fields.setdefault("group_id", "g")
    response = await call(broker, offset_fetch, OffsetFetchRequest(topics=topics, **fields), version)
    return response.error_code, response.topics


def _topics(kind: Any, wanted: dict[str, list[int]] | None) -> Any:
    if wanted is None:
        return None
    topics = [kind(name=name, partition_indexes=indexes) for name, indexes in wanted.items()]
    for topic in topics:
        if kind is OffsetFetchRequest.OffsetFetchRequestTopics:
            topic.topic_id = topic_id_of(topic.name)
    return topics


@pytest.mark.parametrize("version", versions(offset_fetch, 1))
async def test_offsets_asked_for(version: int) -> None:
    async with fake_broker() as broker:
        request = commit_request({"t": {0: 5}}, metadata="m")
        request.topics[0].partitions[0].committed_leader_epoch = 3
        await call(broker, offset_commit, request, 9)
        error, topics = await fetch(broker, version, {"t": [0, 1], "none": [7]})
        assert error == ErrorCode.NONE
        of_none = ErrorCode.NONE if version < 10 else ErrorCode.UNKNOWN_TOPIC_ID
        assert rows(topics) == {("t", 0): (5, 0), ("t", 1): (-1, 0), ("none", 7): (-1, of_none)}
        found = topics[0].partitions[0]
        assert (found.metadata, found.committed_leader_epoch) == ("m", 3 if version >= 5 else -1)


@pytest.mark.parametrize("version", versions(offset_fetch, 2))
async def test_all_offsets(version: int) -> None:
    async with fake_broker() as broker:
        assert await fetch(broker, version, None) == (ErrorCode.NONE, [])
        await commit(broker, {"t": {0: 5, 1: 6}, "u": {0: 7}})
        _, topics = await fetch(broker, version, None)
        assert rows(topics) == {("t", 0): (5, 0), ("t", 1): (6, 0), ("u", 0): (7, 0)}
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
        _, topics = await fetch(broker, version, None)
        assert rows(topics) == {("u", 0): (7, 0)}


@pytest.mark.parametrize("version", versions(offset_fetch, 8))
async def test_a_topic_without_partitions_is_named_where_topics_have_ids(version: int) -> None:
    async with fake_broker() as broker:
        _, topics = await fetch(broker, version, {"t": [], "u": [0]})
        named = {topic_of(topic): len(topic.partitions) for topic in topics}
        assert named == ({"t": 0, "u": 1} if version >= 10 else {"u": 1})


async def test_what_was_committed_for_a_topic_of_another_id_does_not_count() -> None:
    async with fake_broker() as broker:
        old = OffsetAndMetadata(9, -1, "", 0, topic_id=b"the old topic's ")
        kept = OffsetAndMetadata(8, -1, "", 0, topic_id=topic_id_of("t"))
        await broker.groups.ask(CommitOffsets("g", "", None, -1, {("t", 0): old, ("t", 1): kept}))
        _, topics = await fetch(broker, 10, {"t": [0, 1]})
        assert rows(topics) == {("t", 0): (-1, 0), ("t", 1): (8, 0)}
        _, topics = await fetch(broker, 9, {"t": [0, 1]})
        assert rows(topics) == {("t", 0): (9, 0), ("t", 1): (8, 0)}


@pytest.mark.parametrize("version", versions(offset_fetch, 1))
async def test_topics_that_may_not_be_described(version: int) -> None:
    async with fake_broker() as broker:
        await commit(broker, {"t": {0: 5}, "u": {0: 7}})
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
        error, topics = await fetch(broker, version, {"t": [0], "u": [0]})
        assert error == ErrorCode.NONE
        assert rows(topics) == {("u", 0): (7, 0), ("t", 0): (-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)}


@pytest.mark.parametrize("version", versions(offset_fetch, 1))
async def test_a_groups_error_stands_on_top_or_where_there_is_no_top_at_its_partitions(version: int) -> None:
    async with fake_broker(leads=False) as broker:
        refusals = [ErrorCode.NOT_COORDINATOR, ErrorCode.GROUP_AUTHORIZATION_FAILED]
        for expected in refusals:
            error, topics = await fetch(broker, version, {"t": [0, 1]})
            if version == 1 and expected is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                assert (error, topics) == (
                    ErrorCode.NONE,
                    [],
                )  # as Kafka: see compat_tests/security/access/test_acl_matrix.py
            elif version == 1:
                assert rows(topics) == {("t", 0): (-1, expected), ("t", 1): (-1, expected)}
            else:
                assert (error, topics) == (expected, [])
            broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))


@pytest.mark.parametrize("version", versions(offset_fetch, 8))
async def test_several_groups_each_with_its_error(version: int) -> None:
    async with fake_broker() as broker:
        await commit(broker, {"t": {0: 5}}, "a")
        await commit(broker, {"t": {0: 6}}, "b")
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "b"))
        groups = [
            OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in ("a", "b", "c")
        ]
        response = await call(broker, offset_fetch, OffsetFetchRequest(groups=groups), version)
        assert [(group.group_id, group.error_code, rows(group.topics)) for group in response.groups] == [
            ("a", ErrorCode.NONE, {("t", 0): (5, 0)}),
            ("b", ErrorCode.GROUP_AUTHORIZATION_FAILED, {}),
            ("c", ErrorCode.NONE, {}),
        ]


@pytest.mark.parametrize("version", versions(offset_fetch, 7))
async def test_require_stable_waits_out_transactions(version: int) -> None:
    async with fake_broker() as broker:
        await commit(broker, {"t": {0: 5}})
        value = OffsetAndMetadata(9, -1, "", 0)
        await broker.groups.ask(CommitOffsets("g", "", None, -1, {("t", 0): value}, 7, 0))
        _, topics = await fetch(broker, version, {"t": [0]}, require_stable=True)
        assert rows(topics) == {("t", 0): (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)}
        _, topics = await fetch(broker, version, {"t": [0]})
        assert rows(topics) == {("t", 0): (5, 0)}


async def test_version_0_reads_the_tree() -> None:
    async with fake_broker(leads=False) as broker, memory_tree() as broker.tree:
        await call(broker, offset_commit, commit_request({"t": {0: 5}}), 0)
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.TOPIC, "u"))
        _, topics = await fetch(broker, 0, {"t": [0, 1, 9], "u": [0]})
        unknown = (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert rows(topics) == {
            ("t", 0): (5, 0),
            ("t", 1): unknown,
            ("t", 9): unknown,
            ("u", 0): (-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        }
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "g"))
        _, topics = await fetch(broker, 0, {"t": [0]})
        assert rows(topics) == {("t", 0): (-1, ErrorCode.GROUP_AUTHORIZATION_FAILED)}
