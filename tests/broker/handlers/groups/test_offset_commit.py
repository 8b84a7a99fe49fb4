"""OffsetCommit: what each version brings, the tree in version 0, refusals by partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.broker.coordinators.tree_offsets import read_offset
from kpybroker.broker.handlers.groups import offset_commit
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import FetchedOffset
from kpybroker.core.offsets.values import OffsetAndMetadata
from kpybroker.wire.errors import ErrorCode
from tests.broker.handlers.groups.group_scenarios import codes, commit_request, committed, stable_member
from tests.support.brokers.fake_broker import EPOCH_MS, FakeBroker, call, fake_broker, memory_tree, versions
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.consumer_group_requests import group_broker, loaded


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


async def test_a_member_of_a_group_that_is_not_there_hears_so_where_consumer_groups_are_served(tmp_path: Path) -> None:
    request = commit_request({"t": {0: 5}}, member_id="m", generation_id_or_member_epoch=1)
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        assert codes(await ask(broker, request, 8)) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}
        assert codes(await ask(broker, request, 9)) == {("t", 0): ErrorCode.GROUP_ID_NOT_FOUND}
    async with running_broker(tmp_path / "classic", features={}) as broker:
        await create_topic(broker, "t")
        await loaded(broker)
        assert codes(await ask(broker, request, 9)) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}


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
