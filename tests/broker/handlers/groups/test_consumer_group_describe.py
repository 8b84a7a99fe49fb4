"""ConsumerGroupDescribe to a whole broker with `group.version` 1 finalized: epochs, members, assignments, rights."""

from __future__ import annotations

from pathlib import Path

from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.requests.consumer_group_requests import Member, described, group_broker

CONSUMER_MEMBER, UNKNOWN_TYPE = 1, -1
NOT_ASKED = -(2**31)
KAFKA_4S_OPERATIONS = 3400  # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS


def topics(assignment: ConsumerGroupDescribeResponse.Assignment) -> list[tuple[bytes, str, list[int]]]:
    return [(one.topic_id, one.topic_name, one.partitions) for one in assignment.topic_partitions]


async def test_a_group_shows_its_epochs_and_what_each_member_has_and_is_to_have(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", 2)
        first, second = Member(broker, "m1"), Member(broker, "m2")
        await first.join("t", "u", rack_id="r", instance_id="i", server_assignor="range")
        await second.join("t")
        await second.beat()
        group = await described(broker)
        assert (group.error_code, group.group_id, group.group_state) == (ErrorCode.NONE, "g", "Reconciling")
        assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (3, 3, "range")
        assert group.authorized_operations == NOT_ASKED
        one, two = sorted(group.members, key=lambda member: str(member.member_id))
        assert (one.member_id, one.instance_id, one.rack_id, one.member_epoch) == ("m1", "i", "r", 2)
        assert (one.client_id, one.client_host) == ("m1", "/127.0.0.1")
        assert (one.subscribed_topic_names, one.member_type) == (["t", "u"], CONSUMER_MEMBER)
        assert topics(one.assignment) == [(topic_id, "t", [0, 1])]
        assert topics(one.target_assignment) == [(topic_id, "t", [0])]
        assert (two.instance_id, two.rack_id, two.member_epoch) == (None, None, 3)
        assert topics(two.assignment) == []
        assert topics(two.target_assignment) == [(topic_id, "t", [1])]
        group = await described(broker, version=0, include_authorized_operations=True)
        assert {member.member_type for member in group.members} == {UNKNOWN_TYPE}
        assert group.authorized_operations == KAFKA_4S_OPERATIONS
        response = await ask(broker, DescribeGroupsRequest(groups=["g"], include_authorized_operations=True), 5)
        assert response.groups[0].authorized_operations == KAFKA_4S_OPERATIONS


async def test_what_is_no_consumer_group_is_not_found(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        group = await described(broker, "none")
        assert (group.error_code, group.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
        assert (await described(broker, "")).error_code == ErrorCode.INVALID_GROUP_ID


async def test_groups_and_their_topics_need_the_right_to_describe_them(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        await Member(broker, "m1").join("t")
        await Member(broker, "m1", "h").join("t")
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.GROUP, "h")})
        response = await ask(broker, ConsumerGroupDescribeRequest(group_ids=["g", "h"]), 1)
        assert [(group.group_id, group.error_code, len(group.members)) for group in response.groups] == [
            ("h", ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
            ("g", ErrorCode.NONE, 1),
        ]
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TOPIC, "t")})
        group = await described(broker)
        assert (group.group_id, group.error_code, group.members) == ("g", ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
        assert group.error_message == "The group has described topic(s) that the client is not authorized to describe."


async def test_the_older_views_know_the_group_as_kafka_does(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        await Member(broker, "m1").join("t")
        (listed,) = (await ask(broker, ListGroupsRequest(types_filter=["Consumer"]), 5)).groups
        assert (listed.group_id, listed.group_state, listed.group_type) == ("g", "Stable", "consumer")
        (group,) = (await ask(broker, DescribeGroupsRequest(groups=["g"]), 5)).groups
        assert (group.error_code, group.group_state, group.members) == (ErrorCode.NONE, "Dead", [])
        (group,) = (await ask(broker, DescribeGroupsRequest(groups=["g"]), 6)).groups
        assert (group.error_code, group.group_state, group.members) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead", [])
        assert group.error_message == "Group g is not a classic group."
