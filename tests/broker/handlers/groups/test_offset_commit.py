"""OffsetCommit: what each version brings, the tree in version 0, refusals by partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.coordinators.tree_offsets import read_offset
from kpybroker.broker.handlers.groups import offset_commit
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import FetchedOffset
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from tests.broker.handlers.groups.group_scenarios import codes, commit_request, committed, stable_member
from tests.support.brokers.fake_broker import (
    EPOCH_MS,
    FakeBroker,
    call,
    fake_broker,
    memory_tree,
    topic_id_of,
    versions,
)
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.requests.consumer_group_requests import group_broker


def stored(broker: FakeBroker) -> OffsetAndMetadata | None:
    """The offset of t-0 as the coordinator has it."""
    return broker.groups.partitions.shards[0].machine.groups["g"].offsets.get(("t", 0))


@pytest.mark.parametrize("version", versions(offset_commit, 1))
async def test_every_version_keeps_what_it_brings(version: int) -> None:
    async with fake_broker() as broker:
        request = commit_request({"t": {0: 5}}, metadata="m", retention_time_ms=60_000 if 2 <= version <= 4 else -1)
        partition = request.topics[0].partitions[0]
        if version == 1:
            partition.commit_timestamp = 123
        if version >= 6:
            partition.committed_leader_epoch = 4
        response = await call(broker, offset_commit, request, version)
        assert codes(response) == {("t", 0): ErrorCode.NONE}
        found = stored(broker)
        assert found is not None
        assert (found.offset, found.metadata) == (5, "m")
        assert found.leader_epoch == (4 if version >= 6 else -1)
        assert found.commit_timestamp_ms == (123 if version == 1 else pytest.approx(broker.clock.time_ms(), abs=1000))
        if 2 <= version <= 4:
            assert found.expire_timestamp_ms == found.commit_timestamp_ms + 60_000
        else:
            assert found.expire_timestamp_ms is None
        assert found.commit_timestamp_ms == 123 or found.commit_timestamp_ms >= EPOCH_MS


async def test_topics_have_ids_from_version_10_on() -> None:
    async with fake_broker() as broker:
        request = commit_request({"t": {0: 5, 9: 1}, "gone": {0: 6, 1: 7}, "u": {0: 8}})
        for topic in request.topics:
            topic.name = ""
        broker.authorizer.denied.add((Operation.READ, ResourceType.TOPIC, "u"))
        response = await call(broker, offset_commit, request, 10)
        assert {topic.topic_id: [one.error_code for one in topic.partitions] for topic in response.topics} == {
            topic_id_of("gone"): [ErrorCode.UNKNOWN_TOPIC_ID] * 2,
            topic_id_of("t"): [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE],
            topic_id_of("u"): [ErrorCode.TOPIC_AUTHORIZATION_FAILED],
        }
        found = stored(broker)
        assert found is not None
        assert found.offset == 5


async def test_null_metadata_are_empty_ones() -> None:
    async with fake_broker() as broker:
        await call(broker, offset_commit, commit_request({"t": {0: 5}}, metadata=None), 9)
        found = stored(broker)
        assert found is not None
        assert found.metadata == ""


async def test_each_partition_gets_its_response() -> None:
    async with fake_broker() as broker:
        broker.authorizer.denied.add((Operation.READ, ResourceType.TOPIC, "u"))
        request = commit_request({"t": {0: 5, 9: 6}, "u": {0: 7}, "none": {0: 8}})
        response = await call(broker, offset_commit, request, 9)
        assert codes(response) == {
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("t", 0): ErrorCode.NONE,
        }
        assert await committed(broker) == 5


async def test_members_commit_for_their_generation() -> None:
    async with fake_broker() as broker:
        member_id = await stable_member(broker)
        for generation, expected in ((1, ErrorCode.NONE), (2, ErrorCode.ILLEGAL_GENERATION)):
            request = commit_request({"t": {0: 5}}, member_id=member_id, generation_id_or_member_epoch=generation)
            assert codes(await call(broker, offset_commit, request, 9)) == {("t", 0): expected}
        response = await call(broker, offset_commit, commit_request({"t": {0: 5}}), 9)
        assert codes(response) == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}


async def test_refusals_stand_at_every_partition() -> None:
    async with fake_broker(inter_broker_protocol_version="2.2") as broker:
        request = commit_request({"t": {0: 5, 1: 6}})
        request.group_instance_id = "i"
        response = await call(broker, offset_commit, request, 9)
        assert set(codes(response).values()) == {ErrorCode.UNSUPPORTED_VERSION}
        request.group_instance_id = None
        broker.groups.on_resigned(0)
        response = await call(broker, offset_commit, request, 9)
        assert codes(response) == {("t", 0): ErrorCode.NOT_COORDINATOR, ("t", 1): ErrorCode.NOT_COORDINATOR}
        broker.authorizer.denied.add((Operation.READ, ResourceType.GROUP, "g"))
        response = await call(broker, offset_commit, request, 9)
        assert set(codes(response).values()) == {ErrorCode.GROUP_AUTHORIZATION_FAILED}


async def test_an_empty_group_id_may_keep_offsets() -> None:
    async with fake_broker() as broker:
        response = await call(broker, offset_commit, commit_request({"t": {0: 5}}, group_id=""), 9)
        assert codes(response) == {("t", 0): ErrorCode.NONE}
        assert await committed(broker, group_id="") == 5


async def test_version_0_writes_to_the_tree() -> None:
    async with fake_broker(leads=False) as broker, memory_tree() as broker.tree:
        for offset in (5, 6):
            response = await call(broker, offset_commit, commit_request({"t": {0: offset, 9: 1}}), 0)
            assert codes(response) == {("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("t", 0): ErrorCode.NONE}
        assert await read_offset(broker.tree, "g", ("t", 0)) == FetchedOffset(6)
        data = (await broker.tree.get("/consumers/g/offsets/t/0")).data
        assert data == b"6"


async def test_version_0_minds_the_length_of_metadata() -> None:
    async with fake_broker(offset_metadata_max_bytes="4") as broker, memory_tree() as broker.tree:
        response = await call(broker, offset_commit, commit_request({"t": {0: 5}}, metadata="12345"), 0)
        assert codes(response) == {("t", 0): ErrorCode.OFFSET_METADATA_TOO_LARGE}


@pytest.mark.parametrize("features", ["newest", "none"])
async def test_an_offset_has_the_id_of_its_topic_where_group_version_is_finalized(
    tmp_path: Path, features: str
) -> None:
    """As in Kafka 4; and not with a retention time, whose record has no room for it."""
    async with group_broker(tmp_path, kpybroker_new_cluster_features=features) as broker:
        topic_id = await create_topic(broker, "t", 2)
        await ask(broker, commit_request({"t": {0: 5}}), 9)
        await ask(broker, commit_request({"t": {1: 6}}, retention_time_ms=60_000), 4)
        offsets = broker.groups.shard_for("g").machine.groups["g"].offsets
        with_id, with_retention = offsets.get(("t", 0)), offsets.get(("t", 1))
        assert with_id is not None
        assert with_retention is not None
        assert with_id.topic_id == (topic_id if features == "newest" else ZERO_UUID)
        assert with_retention.topic_id == ZERO_UUID


async def test_a_deleted_topic_takes_no_offsets_of_the_one_that_has_its_name_by_now(tmp_path: Path) -> None:
    """Offsets of a deleted topic are forgotten in the background, when clients may know the next one already."""
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t")
        await ask(broker, commit_request({"t": {0: 5}}), 9)
        machine = broker.groups.shard_for("g").machine

        async def forget(present_id: bytes) -> None:
            await broker.groups.partitions.for_each(
                lambda shard, keys: shard.machine.forget_topic(keys[0], "t", present_id, shard.now())
            )

        await forget(topic_id)
        assert "g" in machine.groups
        await forget(bytes(15) + b"x")
        assert "g" not in machine.groups
