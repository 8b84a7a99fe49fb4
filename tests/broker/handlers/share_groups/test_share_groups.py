"""The requests of share groups to a whole broker, with a share coordinator in memory."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from kpybroker.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.share_group_requests import ask_as, share_broker, whole_share_broker
from tests.support.share.members import finalize_share_version

DEADLINE_S = 60
Altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
AlteredPartition = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition
Deleted = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
Described = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
DescribedTopic = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic


async def beat(
    broker: Broker, member_id: str, epoch: int, topics: Collection[str] | None = None, rights: Denying | None = None
) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=None if topics is None else list(topics),
    )
    return await ask_as(broker, request, 1, rights, member_id)


async def join(broker: Broker, member_id: str, *topics: str) -> tuple[int, dict[bytes, list[int]]]:
    """Join, and go on until something is assigned; the epoch and the assignment."""
    response = await beat(broker, member_id, 0, topics)
    with trio.fail_after(DEADLINE_S):
        while not response.error_code and not (response.assignment and response.assignment.topic_partitions):
            await trio.lowlevel.checkpoint()
            response = await beat(broker, member_id, response.member_epoch)
    assert response.error_code == ErrorCode.NONE, response
    return response.member_epoch, {one.topic_id: one.partitions for one in response.assignment.topic_partitions}


async def describe(broker: Broker, rights: Denying | None = None, **fields: Any) -> Any:
    request = ShareGroupDescribeRequest(group_ids=["g"], **fields)
    (group,) = (await ask_as(broker, request, 1, rights)).groups
    return group


async def alter(broker: Broker, rights: Denying | None = None, **offsets: dict[int, int]) -> Any:
    topics = [
        Altered(
            topic_name=name,
            partitions=[AlteredPartition(partition_index=index, start_offset=offset) for index, offset in of.items()],
        )
        for name, of in offsets.items()
    ]
    return await ask_as(broker, AlterShareGroupOffsetsRequest(group_id="g", topics=topics), 0, rights)


async def forget(broker: Broker, *names: str, rights: Denying | None = None) -> Any:
    request = DeleteShareGroupOffsetsRequest(group_id="g", topics=[Deleted(topic_name=name) for name in names])
    return await ask_as(broker, request, 0, rights)


async def offsets(broker: Broker, *topics: tuple[str, list[int]], rights: Denying | None = None) -> Any:
    """Of all partitions without `topics`; start offset, leader epoch, lag and error of each."""
    wanted = [DescribedTopic(topic_name=name, partitions=indexes) for name, indexes in topics]
    request = DescribeShareGroupOffsetsRequest(groups=[Described(group_id="g", topics=wanted or None)])
    (group,) = (await ask_as(broker, request, 1, rights)).groups
    assert group.error_code == ErrorCode.NONE
    return {
        (topic.topic_name, one.partition_index): (one.start_offset, one.leader_epoch, one.lag, one.error_code)
        for topic in group.topics
        for one in topic.partitions
    }


def altered(response: Any) -> dict[tuple[str, int], int]:
    return {
        (topic.topic_name, one.partition_index): one.error_code
        for topic in response.responses
        for one in topic.partitions
    }


async def test_a_member_gets_partitions_whose_states_the_share_coordinator_has_made(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, persister):
        topic_id = await create_topic(broker, "t", 2)
        first = await beat(broker, "m1", 0, ["t"])
        assert (first.member_id, first.member_epoch, first.heartbeat_interval_ms) == ("m1", 2, 5_000)
        assert first.assignment.topic_partitions == []
        epoch, assigned = await join(broker, "m1", "t")
        assert assigned == {topic_id: [0, 1]}
        assert {(key.partition, state) for key, state in persister.states.items()} == {(0, (2, -1, 0)), (1, (2, -1, 0))}
        group = await describe(broker)
        assert (group.group_state, group.assignor_name, group.group_epoch) == ("Stable", "simple", epoch)
        (member,) = group.members
        assert (member.member_id, member.client_id, member.client_host) == ("m1", "m1", "/127.0.0.1")
        assert member.subscribed_topic_names == ["t"]
        (topic,) = member.assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (topic_id, "t", [0, 1])
        assert (await beat(broker, "m1", -1)).member_epoch == -1
        assert (await describe(broker)).group_state == "Empty"


async def test_with_the_brokers_own_share_coordinator(tmp_path: Path) -> None:
    options = {
        "share_coordinator_state_topic_num_partitions": "2",
        "share_coordinator_state_topic_replication_factor": "1",
        "share_coordinator_state_topic_min_isr": "1",
    }
    async with whole_share_broker(tmp_path, **options) as broker:
        topic_id = await create_topic(broker, "t", 2)
        _, assigned = await join(broker, "m1", "t")
        assert assigned == {topic_id: [0, 1]}
        assert await offsets(broker) == {("t", 0): (-1, 0, -1, 0), ("t", 1): (-1, 0, -1, 0)}
        assert (await beat(broker, "m1", -1)).error_code == ErrorCode.NONE
        assert altered(await alter(broker, t={0: 5})) == {("t", 0): 0}
        described = await offsets(broker)
        assert (described["t", 0][0], described["t", 1][0]) == (5, -1)
        (forgotten,) = (await forget(broker, "t")).responses
        assert (forgotten.topic_name, forgotten.error_code) == ("t", ErrorCode.NONE)
        delete = DeleteGroupsRequest(groups_names=["g"])
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.NONE


async def test_groups_are_listed_by_their_type(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, _):
        await create_topic(broker, "t", 1)
        await join(broker, "m1", "t")
        for types, states, found in (([], [], True), (["Share"], ["stable"], True), (["consumer"], [], False)):
            listed = (await ask(broker, ListGroupsRequest(types_filter=types, states_filter=states), 5)).groups
            rows = [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in listed]
            assert rows == ([("g", "share", "Stable", "share")] if found else [])


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST, "Invalid member id in the request."),
        ({"member_id": "m" * 37}, ErrorCode.INVALID_REQUEST, "Invalid member id in the request."),
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST, "MemberId can't be empty."),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST, "GroupId can't be empty."),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        ({}, ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."),
        (
            {"subscribed_topic_names": []},
            ErrorCode.INVALID_REQUEST,
            "SubscribedTopicNames must be set in first request.",
        ),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid."),
        ({"member_epoch": 1}, ErrorCode.GROUP_ID_NOT_FOUND, "Share group g not found."),
        ({"member_epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found."),
    ],
)
async def test_odd_heartbeats_get_kafkas_errors(
    tmp_path: Path, fields: dict[str, Any], error: ErrorCode, text: str
) -> None:
    async with share_broker(tmp_path) as (broker, _):
        known: dict[str, Any] = {"group_id": "g", "member_id": "m", "member_epoch": 0}
        response = await ask_as(broker, ShareGroupHeartbeatRequest(**known | fields), 1)
        assert (response.error_code, response.error_message) == (error, text)


async def test_offsets_are_altered_described_and_forgotten(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, persister):
        topic_id = await create_topic(broker, "t", 2)
        other_id = await create_topic(broker, "u", 1)
        assert await offsets(broker) == {}
        response = await alter(broker, t={0: 5, 1: 7, 2: 1}, x={0: 1})
        assert altered(response) == {("t", 0): 0, ("t", 1): 0, ("t", 2): 3, ("x", 0): 3}
        assert {topic.topic_name: topic.topic_id for topic in response.responses} == {"t": topic_id, "x": ZERO_UUID}
        # the end of both partitions is 0
        assert await offsets(broker) == {("t", 0): (5, 3, -5, 0), ("t", 1): (7, 3, -7, 0)}
        some = await offsets(broker, ("t", [1]), ("u", [0]), ("x", [4]))
        assert some == {("t", 1): (7, 3, -7, 0), ("u", 0): (-1, 3, -1, 0), ("x", 4): (-1, 0, -1, 0)}
        response = await forget(broker, "t", "u", "x")
        rows = {(one.topic_name, one.topic_id, one.error_code) for one in response.responses}
        assert rows == {("t", topic_id, 0), ("u", ZERO_UUID, 3), ("x", ZERO_UUID, 3)}
        assert (persister.states, await offsets(broker)) == ({}, {})
        assert other_id != topic_id


async def test_what_the_share_coordinator_refuses_is_said_of_its_partition(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, persister):
        await create_topic(broker, "t", 2)
        persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert altered(await alter(broker, t={0: 5, 1: 7})) == {("t", 0): 15, ("t", 1): 0}
        assert altered(await alter(broker, t={0: 5, 1: 7})) == {("t", 0): 0, ("t", 1): 0}
        persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        (topic,) = (await forget(broker, "t")).responses
        assert (topic.topic_name, topic.error_code) == ("t", ErrorCode.COORDINATOR_NOT_AVAILABLE)
        (topic,) = (await forget(broker, "t")).responses
        assert (topic.topic_name, topic.error_code) == ("t", ErrorCode.NONE)


async def test_a_group_with_members_keeps_its_offsets_and_itself(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, persister):
        await create_topic(broker, "t", 1)
        await join(broker, "m1", "t")
        for response in (await alter(broker, t={0: 5}), await forget(broker, "t")):
            assert (response.error_code, response.error_message) == (
                ErrorCode.NON_EMPTY_GROUP,
                ErrorCode.NON_EMPTY_GROUP.message,
            )
        delete = DeleteGroupsRequest(groups_names=["g"])
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        await beat(broker, "m1", -1)
        persister.error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await ask(broker, delete, 2)).results[0].error_code == ErrorCode.NONE
        assert persister.states == {}
        assert (await describe(broker)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_a_deleted_topic_is_not_described_any_more(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, _):
        await create_topic(broker, "t", 1)
        await alter(broker, t={0: 5})
        await ask(broker, DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
        with trio.fail_after(DEADLINE_S):
            while any(
                group.states is not None and group.states.initialized
                for machine in broker.groups.partitions.machines
                for group in machine.shares.groups.values()
            ):
                await trio.lowlevel.checkpoint()
        assert await offsets(broker) == {}


async def test_rights(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as (broker, _):
        await create_topic(broker, "t", 1)
        await alter(broker, t={0: 5})
        group, topic = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        no_read = Denying([(Operation.READ, ResourceType.GROUP, "g")])
        assert (await beat(broker, "m", 0, ["t"], no_read)).error_code == group
        assert (await alter(broker, no_read, t={0: 5})).error_code == group
        assert (
            await forget(broker, "t", rights=Denying([(Operation.DELETE, ResourceType.GROUP, "g")]))
        ).error_code == (group)
        no_topic = Denying([(Operation.READ, ResourceType.TOPIC, "t"), (Operation.DESCRIBE, ResourceType.TOPIC, "t")])
        assert (await beat(broker, "m", 0, ["t"], no_topic)).error_code == topic
        assert altered(await alter(broker, no_topic, t={0: 5})) == {("t", 0): topic}
        (refused,) = (await forget(broker, "t", rights=no_topic)).responses
        assert refused.error_code == topic
        assert await offsets(broker, rights=no_topic) == {}
        assert await offsets(broker, ("t", [0]), rights=no_topic) == {("t", 0): (-1, 0, -1, topic)}
        no_describe = Denying([(Operation.DESCRIBE, ResourceType.GROUP, "g")])
        assert (await describe(broker, no_describe)).error_code == group
        request = DescribeShareGroupOffsetsRequest(groups=[Described(group_id="g", topics=None)])
        (refused,) = (await ask_as(broker, request, 1, no_describe)).groups
        assert refused.error_code == group
        await join(broker, "m", "t")
        hidden = await describe(broker, no_topic)
        assert (hidden.error_code, hidden.members) == (topic, [])
        assert (await describe(broker, include_authorized_operations=True)).authorized_operations > 0


async def test_without_the_level_each_request_is_unsupported(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        finalize_share_version(broker, 0)
        unsupported = ErrorCode.UNSUPPORTED_VERSION
        assert (await beat(broker, "m", 0, ["t"])).error_code == unsupported
        assert (await describe(broker)).error_code == unsupported
        assert (await alter(broker, t={0: 5})).error_code == unsupported
        assert (await forget(broker, "t")).error_code == unsupported
        request = DescribeShareGroupOffsetsRequest(groups=[Described(group_id="g", topics=None)])
        assert (await ask_as(broker, request, 1)).groups[0].error_code == unsupported
