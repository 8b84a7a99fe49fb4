"""The requests of streams groups to a whole broker, with members as Kafka Streams has them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.handlers.streams_groups.streams_group_heartbeat import TOPOLOGY_SIZE_MAX
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest
from kpybroker.wire.messages.offset_fetch import OffsetFetchRequest
from kpybroker.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.requests.share_group_requests import ask_as
from tests.support.requests.streams_group_requests import (
    StreamsMember,
    counting,
    described_streams,
    finalize_streams_version,
    streams_broker,
    topology,
)

DEADLINE_S = 60
STALE, NO_SOURCES, PARTITIONED, NO_INTERNAL, SHUTDOWN, DELAYED = range(6)
Request = StreamsGroupHeartbeatRequest


async def test_two_members_share_the_tasks_and_the_last_one_gets_all(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        await create_topic(broker, "wide", 4)
        first, second = StreamsMember(broker, "one"), StreamsMember(broker, "two")
        await first.join(topology("wide"))
        await first.until(active={"0": [0, 1, 2, 3]})
        await second.join(topology("wide"))
        assert second.active == {}
        while second.active != {"0": [2, 3]}:
            await first.beat()
            await second.beat()
        assert first.active == {"0": [0, 1]}
        assert (await first.send(member_epoch=-1)).member_epoch == -1
        await second.until(active={"0": [0, 1, 2, 3]})
        assert (await first.send(member_epoch=-1)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_internal_topics_are_created_while_members_wait(tmp_path: Path) -> None:
    async with streams_broker(tmp_path) as broker:
        await create_topic(broker, "in", 3)
        member = StreamsMember(broker, "one")
        await member.join(counting(topic_configs=[Request.KeyValue(key="cleanup.policy", value="compact")]))
        assert member.statuses == {NO_INTERNAL: "Internal topics are missing: by-key, counts"}
        assert (await described_streams(broker)).group_state == "NotReady"
        await member.until(active={"0": [0, 1, 2], "1": [0, 1, 2]})
        assert member.statuses == {}
        assert broker.metadata.partition_count("by-key") == broker.metadata.partition_count("counts") == 3
        assert await config(broker, "counts", "cleanup.policy") == "compact"
        group = await described_streams(broker)
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", member.epoch, member.epoch)
        counts = group.topology.subtopologies[1]
        assert [(topic.name, topic.partitions) for topic in counts.state_changelog_topics] == [("counts", 3)]
        assert [(topic.name, topic.partitions) for topic in counts.repartition_source_topics] == [("by-key", 3)]
        (described,) = group.members
        assert described.assignment == described.target_assignment
        assert [(one.subtopology_id, one.partitions) for one in described.assignment.active_tasks] == [
            ("0", [0, 1, 2]),
            ("1", [0, 1, 2]),
        ]
        assert (described.process_id, described.topology_epoch, described.client_id) == ("process-one", 0, "one")


async def config(broker: Broker, topic: str, name: str) -> str:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name=topic, configuration_keys=[name]
    )
    (result,) = (await ask(broker, DescribeConfigsRequest(resources=[resource]), 4)).results
    return str(result.configs[0].value)


async def test_a_client_that_may_not_create_internal_topics_hears_which(tmp_path: Path) -> None:
    rights = Denying([(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")])
    rights.denied.add((Operation.CREATE, ResourceType.TOPIC, "counts"))
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        member = StreamsMember(broker, "one", rights=rights)
        await member.join(counting())
        assert member.statuses == {
            NO_INTERNAL: "Internal topics are missing: by-key, counts; Unauthorized to CREATE on topics counts."
        }
        assert not broker.metadata.contains("by-key")
        rights.denied.discard((Operation.CREATE, ResourceType.TOPIC, "counts"))
        await member.until(active={"0": [0], "1": [0]})


async def test_a_creation_that_failed_is_in_the_next_status_and_is_not_tried_at_once(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        member = StreamsMember(broker, "one")
        await member.join(counting(replication_factor=3))
        text = "Internal topics are missing: by-key, counts"
        assert member.statuses == {NO_INTERNAL: text}
        with trio.fail_after(DEADLINE_S):
            while "Creation failed" not in member.statuses.get(NO_INTERNAL, ""):
                await trio.lowlevel.checkpoint()
                await member.beat()
        assert member.statuses == {
            NO_INTERNAL: "Internal topics are missing: counts; Creation failed: counts (Replication factor: 3 larger "
            "than available brokers: 1.)."
        }


async def test_missing_source_topics_are_named_until_they_are_there(tmp_path: Path) -> None:
    async with streams_broker(tmp_path) as broker:
        member = StreamsMember(broker, "one")
        await member.join(topology("in", "other"))
        assert member.statuses == {NO_SOURCES: "Source topics in, other are missing."}
        for name in ("in", "other"):
            await create_topic(broker, name)
        await member.until(active={"0": [0]})


@pytest.mark.parametrize(
    ("names", "error", "text"),
    [
        (
            ["in", "__consumer_offsets", "__transaction_state"],
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            "Use of Kafka internal topics __consumer_offsets,__transaction_state in a Kafka Streams topology is "
            "prohibited.",
        ),
        (["a b", "in", ""], ErrorCode.STREAMS_INVALID_TOPOLOGY, "Topic names a b, are not valid topic names."),
        (["in", "hidden"], ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
    ],
)
async def test_names_that_a_topology_may_not_have(
    names: list[str], error: ErrorCode, text: str | None, tmp_path: Path
) -> None:
    rights = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "hidden")])
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        response = await StreamsMember(broker, "one", rights=rights).send(topology=topology(*names))
        assert (response.error_code, response.error_message) == (error, text)


async def test_a_group_may_be_denied_and_a_heartbeat_be_malformed(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        denied = StreamsMember(broker, "one", rights=Denying([(Operation.READ, ResourceType.GROUP, "g")]))
        response = await denied.send(topology=topology("__consumer_offsets"))
        assert (response.error_code, response.error_message) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)
        member = StreamsMember(broker, "one")
        response = await member.send()
        text = "RebalanceTimeoutMs must be provided in first request."
        assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, text)
        twice = [Request.TaskIds(subtopology_id="0", partitions=[0])] * 2
        assert (await member.send(member_epoch=1, active_tasks=twice)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        nothing: list[Any] = []
        kinds = {"active_tasks": nothing, "standby_tasks": nothing, "warmup_tasks": nothing}
        response = await member.send(topology=topology("in", epoch=-1), rebalance_timeout_ms=1, **kinds)
        assert (response.error_code, response.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        response = await member.send(member_epoch=1)
        assert (response.error_code, response.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Streams group g not found.",
        )


async def test_a_group_is_described_to_those_who_may_see_all_of_its_topics(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        await StreamsMember(broker, "one").join(topology("in"))
        group = await described_streams(broker, include_authorized_operations=True)
        assert (group.error_code, group.authorized_operations) == (ErrorCode.NONE, 3400)
        hidden = Denying([(Operation.DESCRIBE, ResourceType.TOPIC, "in")])
        group = await described_streams(broker, rights=hidden)
        assert (group.error_code, group.error_message, group.topology, group.members) == (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The described group uses topics that the client is not authorized to describe.",
            None,
            [],
        )
        denied = Denying([(Operation.DESCRIBE, ResourceType.GROUP, "denied")])
        request = StreamsGroupDescribeRequest(group_ids=["", "other", "denied"])
        groups = (await ask_as(broker, request, 0, denied)).groups
        assert [(group.group_id, group.error_code, group.error_message) for group in groups] == [
            ("denied", ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
            ("", ErrorCode.INVALID_GROUP_ID, None),
            ("other", ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found."),
        ]


async def test_a_member_says_where_it_is_and_others_hear_of_it(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        member = StreamsMember(broker, "one")
        endpoint = Request.Endpoint(host="here", port=65_535)
        tags = [Request.KeyValue(key="zone", value="a"), Request.KeyValue(key="rack", value="b")]
        await member.join(topology("in"), user_endpoint=endpoint, client_tags=tags, rack_id="r")
        response = await member.beat(endpoint_information_epoch=-1)
        assert response.endpoint_information_epoch == 0  # what the first heartbeat of a group says of it is not counted
        assert response.partitions_by_user_endpoint is not None
        (of,) = response.partitions_by_user_endpoint
        assert (of.user_endpoint.host, of.user_endpoint.port) == ("here", 65_535)
        assert [(one.topic, one.partitions) for one in of.active_partitions] == [("in", [0])]
        assert (await member.beat(endpoint_information_epoch=0)).partitions_by_user_endpoint is None
        (described,) = (await described_streams(broker)).members
        assert (described.rack_id, described.user_endpoint.port) == ("r", 65_535)
        assert [(tag.key, tag.value) for tag in described.client_tags] == [("rack", "b"), ("zone", "a")]


async def test_offsets_are_of_members_and_go_with_the_group(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        member = StreamsMember(broker, "one")
        await member.join(topology("in"))
        assert await commit(broker, member.epoch, "one") == ErrorCode.NONE
        assert await commit(broker, member.epoch + 1, "one") == ErrorCode.STALE_MEMBER_EPOCH
        assert await commit(broker, member.epoch, "two") == ErrorCode.UNKNOWN_MEMBER_ID
        assert await committed(broker, member.epoch, "one") == (ErrorCode.NONE, 7)
        assert (await committed(broker, member.epoch + 1, "one"))[0] == ErrorCode.STALE_MEMBER_EPOCH
        topics = [OffsetDeleteRequest.OffsetDeleteRequestTopic(name="in", partitions=[_deleted(0)])]
        response = await ask(broker, OffsetDeleteRequest(group_id="g", topics=topics), 0)
        assert response.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert await listed(broker) == [("g", "streams", "Stable", "streams")]
        assert await delete(broker) == ErrorCode.NON_EMPTY_GROUP
        await member.send(member_epoch=-1)
        assert await listed(broker) == [("g", "streams", "Empty", "streams")]
        assert await delete(broker) == ErrorCode.NONE
        assert await listed(broker) == []


def _deleted(index: int) -> Any:
    return OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)


async def commit(broker: Broker, epoch: int, member_id: str) -> int:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="in", partitions=[partition])],
    )
    response = await ask(broker, request, 9)
    return int(response.topics[0].partitions[0].error_code)


async def committed(broker: Broker, epoch: int, member_id: str) -> tuple[int, int]:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="in", partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g", member_id=member_id, member_epoch=epoch, topics=[topic]
    )
    (found,) = (await ask(broker, OffsetFetchRequest(groups=[group]), 9)).groups
    return (found.error_code, found.topics[0].partitions[0].committed_offset if found.topics else -1)


async def listed(broker: Broker) -> list[tuple[str, str, str, str]]:
    response = await ask(broker, ListGroupsRequest(types_filter=["streams"]), 5)
    return [(one.group_id, one.protocol_type, one.group_state, one.group_type) for one in response.groups]


async def delete(broker: Broker) -> int:
    return int((await ask(broker, DeleteGroupsRequest(groups_names=["g"]), 2)).results[0].error_code)


async def test_without_the_level_requests_are_refused_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        finalize_streams_version(broker, 0)
        caplog.set_level(logging.WARNING)
        request = StreamsGroupHeartbeatRequest(group_id="a group", member_id="m")
        for _ in range(2):
            response = await ask(broker, request, 0, "streamer")
            assert (response.error_code, response.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        assert [record.getMessage() for record in caplog.records] == [
            "Refused test client_id=streamer group='a group': streams groups (KIP-1071) are not served; raise the "
            "level: kpybroker feature upgrade streams.version=1"
        ]
        (group,) = (await ask(broker, StreamsGroupDescribeRequest(group_ids=["g"]), 0)).groups
        assert (group.group_id, group.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)


async def test_a_broker_that_names_other_protocols_serves_none(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, group_coordinator_rebalance_protocols="classic,consumer") as broker:
        request = StreamsGroupHeartbeatRequest(group_id="g", member_id="m")
        assert (await ask(broker, request, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_topology_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with streams_broker(tmp_path, topics=["in"]) as broker:
        member = StreamsMember(broker, "one")
        names = [f"in-{number}" for number in range(TOPOLOGY_SIZE_MAX)]
        await member.join(topology(*names[1:]))
        none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        refused = await member.send(member_epoch=0, rebalance_timeout_ms=1, topology=topology(*names), **none)
        assert refused.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
        assert f"The topology has {TOPOLOGY_SIZE_MAX + 1} subtopologies" in (refused.error_message or "")
