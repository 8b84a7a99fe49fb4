"""ConsumerGroupHeartbeat to a whole broker: refused until `group.version` 1 is finalized, and then served."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.core.assignors.values import Assignment, Assignor, Members, Slices, Topics
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest
from tests.support.brokers.fake_broker import Denying
from tests.support.brokers.running_broker import ask, create_topic, forget_metadata, running_broker
from tests.support.requests.consumer_group_requests import DEADLINE_S, Member, described, group_broker, settle

JOINING = ConsumerGroupHeartbeatRequest(group_id="orders", member_id="m", rebalance_timeout_ms=1, topic_partitions=[])


@pytest.mark.parametrize("version", [0, 1])
async def test_a_client_is_refused_and_logged_once(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, kpybroker_new_cluster_features="none") as broker:
        client = PlainConnectionInfo(connection_id="here-there-1")
        hello = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.0")
        await ask(broker, hello, 3, "payments", client)
        caplog.set_level(logging.WARNING)
        for _ in range(2):
            response = await ask(broker, JOINING, version, "payments", client)
            assert (response.error_code, response.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        assert [record.getMessage() for record in caplog.records] == [
            "Refused here-there-1 client_id=payments software=librdkafka-2.16.0 group=orders: the consumer group "
            "protocol (KIP-848) is not served; set group.protocol=classic in the client, or raise the level: kpybroker "
            "feature upgrade group.version=1"
        ]
        await ask(broker, JOINING, version, "another", client)
        assert len(caplog.records) == 2


# --- with group.version 1 finalized


async def test_a_member_joins_gets_everything_and_hears_nothing_new(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", 3)
        member = Member(broker, "m1")
        response = await member.join("t")
        assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("m1", 2, 5000)
        assert member.owned == {topic_id: frozenset({0, 1, 2})}
        response = await member.beat()
        assert (response.member_epoch, response.assignment) == (2, None)


async def test_in_version_0_the_broker_makes_the_id_of_a_member(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        members = [Member(broker, "", version=0) for _ in range(2)]
        for member in members:
            made = (await member.join("t")).member_id
            assert made is not None
            assert UUID(bytes=znodes.decode_uuid(made)).version == 4, "as Kafka's `Uuid.randomUuid`"
        assert members[0].member_id != members[1].member_id
        await members[0].beat()
        response = await Member(broker, "").send(rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=[])
        assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")


async def test_two_members_share_and_the_one_that_stays_gets_all_again(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", 4)
        first, second = members = [Member(broker, "m1"), Member(broker, "m2")]
        await first.join("t")
        assert len(first.owned[topic_id]) == 4
        await second.join("t")
        assert not second.owned
        await settle(members, lambda: [len(one.owned.get(topic_id, ())) for one in members] == [2, 2])
        assert first.epoch == second.epoch == 3
        response = await second.leave()
        assert (response.error_code, response.member_epoch) == (ErrorCode.NONE, -1)
        assert (await second.leave()).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        await settle([first], lambda: len(first.owned[topic_id]) == 4)


async def test_a_longer_assignment_is_computed_outside_the_request(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_ids = [await create_topic(broker, f"t{number}", 100) for number in range(3)]
        shared = broker.groups._consumers.surroundings.assignors
        assert isinstance(shared, dict)
        shared["uniform"] = _in_slices(shared["uniform"])
        member = Member(broker, "m1")
        response = await member.join(*(f"t{number}" for number in range(3)))
        assert response.assignment is not None
        assert not response.assignment.topic_partitions
        await settle([member], lambda: [len(member.owned.get(topic_id, ())) for topic_id in topic_ids] == [100] * 3)


def _in_slices(assignor: Assignor) -> Assignor:
    def assign(members: Members, topics: Topics) -> Slices[Assignment]:
        yield
        return (yield from assignor(members, topics))

    return assign


async def test_a_topic_that_grows_reaches_its_members(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", 1)
        member = Member(broker, "m1")
        await member.join("t", "later")
        assert member.owned == {topic_id: frozenset({0})}
        grown = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3, assignments=None)
        response = await ask(broker, CreatePartitionsRequest(topics=[grown], timeout_ms=60_000), 3)
        assert response.results[0].error_code == ErrorCode.NONE
        await settle([member], lambda: len(member.owned[topic_id]) == 3)
        later = await create_topic(broker, "later", 2)
        await settle([member], lambda: len(member.owned.get(later, ())) == 2)


async def test_a_static_member_comes_back_to_what_it_had(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t", 4)
        first, other = Member(broker, "m1"), Member(broker, "m2")
        await first.join("t", instance_id="i")
        await other.join("t")
        await settle([first, other], lambda: first.epoch == other.epoch == 3 and bool(other.owned))
        again = Member(broker, "m3")
        taken = await again.send(
            instance_id="i", rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["t"]
        )
        assert taken.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
        assert (await first.leave(-2, instance_id="i")).member_epoch == -2
        assert (await other.leave(-2)).error_code == ErrorCode.INVALID_REQUEST
        await again.join("t", instance_id="i")
        assert again.owned == first.owned
        assert (await first.send(instance_id="i")).error_code == ErrorCode.FENCED_INSTANCE_ID


async def test_a_member_with_a_wrong_epoch_is_fenced(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        member = Member(broker, "m1")
        await member.join("t")
        response = await member.send(member_epoch=7)
        assert (response.error_code, response.member_epoch) == (ErrorCode.FENCED_MEMBER_EPOCH, 0)
        assert "greater member epoch (7)" in (response.error_message or "")
        assert (await Member(broker, "other").send(member_epoch=2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert (await Member(broker, "m1", "none").send(member_epoch=2)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await member.join("t")
        assert member.owned


async def test_a_silent_member_is_fenced_when_its_session_ends(tmp_path: Path) -> None:
    bounds = {f"group_consumer_{bound}session_timeout_ms": "10" for bound in ("min_", "")}
    async with group_broker(tmp_path, **bounds) as broker:
        await create_topic(broker, "t")
        member = Member(broker, "m1")
        await member.join("t")
        with trio.fail_after(DEADLINE_S):
            while (await described(broker)).members:
                await trio.lowlevel.checkpoint()
        assert (await member.send()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_pattern_brings_the_topics_that_it_matches(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        ids = [await create_topic(broker, name) for name in ("a1", "a2")]
        await create_topic(broker, "b1")
        member = Member(broker, "m1")
        await member.join(subscribed_topic_regex="a[0-9]")
        assert not member.owned
        await settle([member], lambda: member.owned == dict.fromkeys(ids, frozenset({0})))
        group = await described(broker)
        assert [one.subscribed_topic_regex for one in group.members] == ["a[0-9]"]


async def test_a_pattern_shows_no_topic_that_the_member_may_not_describe(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        seen, _ = [await create_topic(broker, name) for name in ("a1", "a2")]
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TOPIC, "a2")})
        member = Member(broker, "m1")
        await member.join(subscribed_topic_regex="a.")
        await settle([member], lambda: bool(member.owned))
        assert member.owned == {seen: frozenset({0})}


async def test_a_pattern_that_is_none_is_refused_with_what_is_wrong(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        response = await Member(broker, "m1").send(
            rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_regex="(a"
        )
        assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert response.error_message == (
            "SubscribedTopicRegex `(a` is not a valid regular expression: missing closing )."
        )


async def test_requests_are_checked_before_any_group_sees_them(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        member = Member(broker, "m1")
        response = await member.send(subscribed_topic_names=["t"])
        assert (response.error_code, response.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "RebalanceTimeoutMs must be provided in first request.",
        )
        response = await member.send(
            rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["t"], server_assignor="sticky"
        )
        assert (response.error_code, response.error_message) == (
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
        )


async def test_groups_and_topics_need_their_rights(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        await create_topic(broker, "t")
        await create_topic(broker, "hidden")
        member = Member(broker, "m1")
        joining: dict[str, Any] = {"rebalance_timeout_ms": 1, "topic_partitions": []}
        broker.authorizer = Denying({(Operation.DESCRIBE, ResourceType.TOPIC, "hidden")})
        response = await member.send(**joining, subscribed_topic_names=["t", "hidden"])
        assert (response.error_code, response.error_message) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        assert (await member.send(**joining, subscribed_topic_names=["t"])).error_code == ErrorCode.NONE
        broker.authorizer = Denying({(Operation.READ, ResourceType.GROUP, "g")})
        response = await member.send(**joining, subscribed_topic_names=["t"])
        assert (response.error_code, response.error_message) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)


@pytest.mark.parametrize(
    ("keys", "fix"),
    [
        ({"kpybroker_new_cluster_features": "none"}, ", or raise the level: kpybroker feature upgrade group.version=1"),
        (
            {"group_coordinator_rebalance_protocols": "classic"},
            ", or add consumer to group.coordinator.rebalance.protocols of the brokers",
        ),
        ({"kpybroker_kafka_version": "3.9"}, ""),
    ],
)
async def test_without_the_level_or_where_the_broker_is_not_to_serve_it_it_is_refused(
    tmp_path: Path, keys: dict[str, str], fix: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with group_broker(tmp_path, **keys) as broker:
        caplog.set_level(logging.WARNING)
        response = await Member(broker, "m1", version=0).send()
        assert (response.error_code, response.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        (line,) = [record.getMessage() for record in caplog.records if "KIP-848" in record.getMessage()]
        assert line.endswith(f"set group.protocol=classic in the client{fix}")
        if "kpybroker_kafka_version" in keys:
            return  # it has no ConsumerGroupDescribe
        assert (await described(broker)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_group_goes_on_after_a_restart_and_no_one_has_to_give_up_anything(tmp_path: Path) -> None:
    async with group_broker(tmp_path, keeps=True) as broker:
        topic_id = await create_topic(broker, "t", 3)
        member = Member(broker, "m1")
        await member.join("t")
    async with group_broker(tmp_path, keeps=True) as broker:
        member.broker = broker
        response = await member.beat()
        assert (response.member_epoch, response.assignment) == (2, None)
        assert member.owned == {topic_id: frozenset({0, 1, 2})}


async def test_a_heartbeat_waits_for_the_first_metadata(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "t", 3)
        member, other = Member(broker, "m1"), Member(broker, "m2")
        await member.join("t")
        restoring = forget_metadata(broker.metadata)
        broker.groups._on_topics_named(["t"])  # as of a coordinator that was built before the first metadata
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.join, "t")
            await trio.testing.wait_all_tasks_blocked()
            assert other.epoch == 0, "a response before the metadata"
            await broker.metadata.update(restoring)
        await settle([member, other], lambda: len(member.owned[topic_id]) + len(other.owned.get(topic_id, ())) == 3)
        await settle([member, other], lambda: other.epoch == member.epoch and bool(other.owned))
        assert member.owned[topic_id]
