"""Offsets of consumer groups (KIP-848) at a whole broker: commits and fetches with epochs, and their deletion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from tests.broker.handlers.groups.group_scenarios import codes, commit_request
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.requests.consumer_group_requests import Member, group_broker

NO_EPOCH = -1


async def commit(broker: Broker, offset: int, version: int = 9, topic: str = "t", **member: Any) -> int:
    """The error of a commit to partition 0 of the topic."""
    response = await ask(broker, commit_request({topic: {0: offset}}, **member), version)
    (code,) = codes(response).values()
    return int(code)


async def fetch(broker: Broker, member_id: str | None = None, epoch: int = NO_EPOCH) -> tuple[int, int | None]:
    """The error of the group, and the offset of t-0."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    topics = [OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    asked = group(group_id="g", member_id=member_id, member_epoch=epoch, topics=topics)
    (found,) = (await ask(broker, OffsetFetchRequest(groups=[asked]), 9)).groups
    return found.error_code, found.topics[0].partitions[0].committed_offset if found.topics else None


async def delete_offset(broker: Broker, topic: str) -> int:
    """The error of partition 0 of the topic."""
    partitions = [OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    response = await ask(broker, OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert response.error_code == ErrorCode.NONE
    return int(response.topics[0].partitions[0].error_code)


async def test_members_commit_and_fetch_with_their_epoch(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        member = Member(broker, "m1")
        await member.join("t")
        of_member: dict[str, Any] = {"member_id": "m1", "generation_id_or_member_epoch": member.epoch}
        stale = of_member | {"generation_id_or_member_epoch": member.epoch + 1}
        assert await commit(broker, 5, **of_member) == ErrorCode.NONE
        assert await commit(broker, 6, **stale) == ErrorCode.STALE_MEMBER_EPOCH
        assert await commit(broker, 6, **of_member | {"member_id": "who"}) == ErrorCode.UNKNOWN_MEMBER_ID
        assert await commit(broker, 6) == ErrorCode.UNKNOWN_MEMBER_ID
        assert await commit(broker, 6, 8, **of_member) == ErrorCode.UNSUPPORTED_VERSION
        assert await fetch(broker, "m1", member.epoch) == (ErrorCode.NONE, 5)
        assert await fetch(broker, "m1", member.epoch + 1) == (ErrorCode.STALE_MEMBER_EPOCH, None)
        assert await fetch(broker, "who", member.epoch) == (ErrorCode.UNKNOWN_MEMBER_ID, None)
        assert await fetch(broker) == (ErrorCode.NONE, 5)


async def test_a_commit_to_no_group_says_so_where_the_version_has_a_word_for_it(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        of_member: dict[str, Any] = {"member_id": "m1", "generation_id_or_member_epoch": 1}
        assert await commit(broker, 5, 9, **of_member) == ErrorCode.GROUP_ID_NOT_FOUND
        assert await commit(broker, 5, 8, **of_member) == ErrorCode.ILLEGAL_GENERATION
        assert await commit(broker, 5) == ErrorCode.NONE


async def test_offsets_of_topics_that_members_read_stay_and_so_does_their_group(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        for name in ("t", "u", "other"):
            await create_topic(broker, name)
        for name in ("t", "u", "other"):
            assert await commit(broker, 5, topic=name) == ErrorCode.NONE
        member = Member(broker, "m1")
        await member.join(subscribed_topic_names=["t"], subscribed_topic_regex="u.*")
        await member.beat()
        found = {name: await delete_offset(broker, name) for name in ("t", "other")}
        assert found == {"t": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "other": ErrorCode.NONE}
        delete = DeleteGroupsRequest(groups_names=["g"])
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        await member.leave()
        assert await delete_offset(broker, "t") == ErrorCode.NONE
        (listed,) = (await ask(broker, ListGroupsRequest(states_filter=["empty"]), 5)).groups
        assert (listed.group_id, listed.group_state, listed.group_type) == ("g", "Empty", "consumer")
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.NONE
        assert (await ask(broker, ListGroupsRequest(), 5)).groups == []
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
