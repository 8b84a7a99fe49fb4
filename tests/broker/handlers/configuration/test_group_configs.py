"""The configuration of groups (resource type GROUP), compared with Kafka 4.3.1's responses to the same requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.broker.handlers.configuration import alter_configs, describe_configs, incremental_alter_configs
from kpybroker.coordination.tree import create_recursive
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.features import GROUP_VERSION, VersionRange
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from kpybroker.wire.messages.update_features import UpdateFeaturesRequest
from tests.support.brokers.configured_broker import call
from tests.support.brokers.control_broker import Denying
from tests.support.brokers.hosted import until
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.requests.config_requests import APPEND, BROKER, DELETE, SET, alter, change, incremental, legacy
from tests.support.requests.consumer_group_requests import DEADLINE_S, Member, group_broker
from tests.support.requests.recorded_configs import played

RECORDED = json.loads((Path(__file__).parent / "kafka_4_3_1_group_configs.json").read_text())
"""Requests in the order in which Kafka was asked, each with its response."""

GROUP = 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
OK = [(ErrorCode.NONE, None)]


@asynccontextmanager
async def broker_of_groups(directory: Path, **keys: Any) -> AsyncIterator[Broker]:
    """A broker of the id that the recorded one had, with `group.version` 1 finalized."""
    features = {GROUP_VERSION: VersionRange(0, 1)}
    async with running_broker(directory, features=features, broker_id="1", **keys) as broker:
        yield broker


def ours(step: dict[str, Any]) -> Any:
    """What Kafka responded, but for our own texts where Kafka has only a code."""
    recorded = step["response"]
    if step["api"] == "ListConfigResources":
        return recorded
    if recorded[0][2] == -1:
        # A mistake of the client is reported as one, where Kafka fails with a NullPointerException.
        return [[GROUP, "g", ErrorCode.INVALID_REQUEST, "Unknown operations type 7"]]
    if len(recorded) == 3 and recorded[2][0] == 99:
        text = "Unexpected resource type UNKNOWN for resource x"
        return [[kind, name, code, text, configs] for kind, name, code, _, configs in recorded]
    return recorded


async def test_every_recorded_request_gets_kafkas_response(tmp_path: Path) -> None:
    async with broker_of_groups(tmp_path) as broker:
        for step in RECORDED:
            assert await played(broker, step) == ours(step), step


async def test_defaults_come_from_the_broker(tmp_path: Path) -> None:
    keys = {"group_consumer_session_timeout_ms": "46000", "group_consumer_assignment_interval_ms": "500"}
    async with broker_of_groups(tmp_path, **keys) as broker:
        describe = {"api": "DescribeConfigs", "version": 4, "synonyms": True, "resources": [[GROUP, "g", None]]}
        ((_, _, _, _, entries),) = await played(broker, describe)
        static, default = 4, 5
        session, assignment = "group.consumer.session.timeout.ms", "group.consumer.assignment.interval.ms"
        heartbeat = "group.consumer.heartbeat.interval.ms"
        shared = {entry[0]: entry[1:] for entry in entries if entry[0].startswith("share.")}
        assert len(shared) == 9
        assert shared["share.auto.offset.reset"] == [
            *("latest", 2, default, False, False),
            [["share.auto.offset.reset", "latest", default]],
        ]
        assert shared["share.delivery.count.limit"] == [
            *("5", 3, default, False, False),
            [["group.share.delivery.count.limit", "5", default]],
        ]
        assert [entry for entry in entries if entry[0].startswith("consumer.")] == [
            [SESSION, "46000", 3, static, False, False, [[session, "46000", static], [session, "45000", default]]],
            [
                *("consumer.assignment.interval.ms", "500", 3, static, False, False),
                [[assignment, "500", static], [assignment, "1000", default]],
            ],
            [HEARTBEAT, "5000", 3, default, False, False, [[heartbeat, "5000", default]]],
        ]


async def test_the_default_of_the_assignment_interval_changes_while_the_broker_runs(tmp_path: Path) -> None:
    # The one of the brokers' keys for consumer groups that Kafka 4.3.1 lets change, for one broker and for all.
    key, others = "group.consumer.assignment.interval.ms", "group.consumer.{}.assignment.interval.ms"
    async with broker_of_groups(tmp_path) as broker:
        configs = broker.coordinators.group_configs
        for name, value, holds in (("", "0", 0), ("1", "2000", 2_000), ("1", None, 0), ("", None, 1_000)):
            operation = (key, SET, value) if value is not None else (key, DELETE, None)
            assert await change(broker, (BROKER, name, [operation])) == OK
            await until(partial(_has_interval, configs, holds))
        for other in map(others.format, ("min", "max")):
            ((code, text),) = await change(broker, (BROKER, "", [(other, SET, "1")]))
            assert (code, f"Cannot update these configs dynamically: Set({other})" in str(text)) == (42, True)
        ((code, text),) = await change(broker, (BROKER, "", [(key, SET, "15001")]))
        assert (code, f"{key} must be less than or equal to {others.format('max')}" in str(text)) == (42, True)
        assert configs.of("g").assignment_interval_ms == 1_000


def _has_interval(configs: GroupConfigs, interval_ms: int) -> bool:
    return configs.of("g").assignment_interval_ms == interval_ms


async def test_what_is_stored_is_checked_again_at_each_change(tmp_path: Path) -> None:
    # As Kafka: 2500 was allowed when it was set.
    async with broker_of_groups(tmp_path, group_consumer_min_heartbeat_interval_ms="3000") as broker:
        await broker.configs.write(znodes.CONFIG_GROUPS, "g", {HEARTBEAT: "2500"})
        text = f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms"
        refused = [(ErrorCode.INVALID_CONFIG, text)]
        assert await change(broker, (GROUP, "g", [(SESSION, SET, "45000")])) == refused
        assert await change(broker, (GROUP, "g", [(SESSION, DELETE, None)])) == refused
        assert await change(broker, (GROUP, "g", [(HEARTBEAT, DELETE, None)])) == OK
        assert await broker.configs.entities(znodes.CONFIG_GROUPS) == []


async def test_a_stored_value_below_the_bound_is_shown_and_the_bound_holds(tmp_path: Path) -> None:
    # As Kafka, asked with the same keys after a restart.
    async with group_broker(tmp_path, group_consumer_min_heartbeat_interval_ms="3000") as broker:
        await broker.configs.write(znodes.CONFIG_GROUPS, "g", {HEARTBEAT: "2500"})
        assert (await Member(broker, "m").join("t")).heartbeat_interval_ms == 3_000
        describe = {"api": "DescribeConfigs", "version": 4, "synonyms": False, "resources": [[GROUP, "g", [HEARTBEAT]]]}
        assert await played(broker, describe) == [[GROUP, "g", 0, "", [[HEARTBEAT, "2500", 3, 8, False, False, []]]]]


async def test_what_another_program_stored_is_shown_and_does_no_harm(tmp_path: Path) -> None:
    async with broker_of_groups(tmp_path) as broker:
        await broker.configs.write(znodes.CONFIG_GROUPS, "g", {"secret": "p", SESSION: "50000"})
        await broker.configs.write(znodes.CONFIG_GROUPS, "h", {SESSION: "many"})
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(resource_type=GROUP, resource_name=name)
                for name in ("g", "h")
            ]
        )
        g, h = (await ask(broker, request, 4)).results
        (unknown,) = (one for one in g.configs if one.name == "secret")
        assert (unknown.value, unknown.is_sensitive, unknown.config_source) == (None, True, 8)
        assert (h.error_code, h.configs) == (ErrorCode.INVALID_CONFIG, [])
        assert h.error_message == f"Invalid value many for configuration {SESSION}: Not a number of type INT"


@pytest.mark.parametrize("features", [{}, {GROUP_VERSION: VersionRange(0, 1)}], ids=["3.9", "downgraded"])
async def test_without_a_finalized_level_groups_are_what_they_are_to_kafka_3_9(
    tmp_path: Path, features: dict[str, VersionRange]
) -> None:
    async with running_broker(tmp_path, features=features) as broker:
        if features:
            update = UpdateFeaturesRequest.FeatureUpdateKey(feature=GROUP_VERSION, upgrade_type=2)
            response = await ask(broker, UpdateFeaturesRequest(feature_updates=[update], timeout_ms=60_000), 2)
            assert response.error_code == ErrorCode.NONE
        unknown = [(ErrorCode.INVALID_REQUEST, "Unknown resource type 32")]
        assert await change(broker, (GROUP, "g", [(SESSION, SET, "50000")])) == unknown
        assert await alter(broker, (GROUP, "g", [(SESSION, "50000")])) == unknown
        describe = {"api": "DescribeConfigs", "version": 4, "synonyms": True, "resources": [[GROUP, "g", None]]}
        text = "Unexpected resource type UNKNOWN for resource g"
        assert await played(broker, describe) == [[GROUP, "g", ErrorCode.INVALID_REQUEST, text, []]]


async def test_rights_are_asked_of_the_group(tmp_path: Path) -> None:
    async with broker_of_groups(tmp_path) as broker:
        denying = Denying({(Operation.ALTER_CONFIGS, ResourceType.GROUP, "g")})
        text = ErrorCode.GROUP_AUTHORIZATION_FAILED.message
        refused = (ErrorCode.GROUP_AUTHORIZATION_FAILED, text)
        for handler, request in (
            (incremental_alter_configs, incremental((GROUP, "g", [("no", APPEND, "1")]), (GROUP, "h", []))),
            (alter_configs, legacy((GROUP, "g", [("no", "1")]), (GROUP, "h", []))),
        ):
            response = await call(broker, handler, request, 1, authorizer=denying)
            found = [(one.error_code, one.error_message) for one in response.responses]
            assert found == [refused, (ErrorCode.NONE, None)]
        resources = [
            DescribeConfigsRequest.DescribeConfigsResource(resource_type=GROUP, resource_name=name) for name in "gh"
        ]
        describe = DescribeConfigsRequest(resources=resources)
        denying = Denying({(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, "g")})
        response = await call(broker, describe_configs, describe, 4, authorizer=denying)
        assert [(one.resource_name, one.error_code, bool(one.configs)) for one in response.results] == [
            ("h", ErrorCode.NONE, True),
            ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
        ]


async def test_a_change_holds_from_the_members_next_heartbeat_on(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        member = Member(broker, "m")
        assert (await member.join("t")).heartbeat_interval_ms == 5_000
        assert await change(broker, (GROUP, "g", [(HEARTBEAT, SET, "7000"), (SESSION, SET, "60000")])) == OK
        assert (await member.beat()).heartbeat_interval_ms == 7_000
        assert await change(broker, (GROUP, "g", [(HEARTBEAT, DELETE, None)])) == OK
        assert (await member.beat()).heartbeat_interval_ms == 5_000
        other = Member(broker, "m", "h")
        assert (await other.join("t")).heartbeat_interval_ms == 5_000


async def test_a_change_by_another_broker_or_tool_is_applied(tmp_path: Path) -> None:
    async with group_broker(tmp_path) as broker:
        member = Member(broker, "m")
        await member.join("t")
        entity = znodes.config_path(znodes.CONFIG_GROUPS, znodes.group_entity("g"))
        await create_recursive(broker.tree, entity, znodes.encode_config({HEARTBEAT: "7000"}))
        notification = znodes.encode_config_change(f"{znodes.CONFIG_GROUPS}/g")
        await broker.tree.create(znodes.config_change_path(), notification, sequential=True)
        with trio.fail_after(DEADLINE_S):
            while (await member.beat()).heartbeat_interval_ms != 7_000:
                await trio.lowlevel.checkpoint()


async def test_a_group_keeps_its_configuration_when_the_broker_starts_again(tmp_path: Path) -> None:
    async with group_broker(tmp_path, keeps=True) as broker:
        assert await change(broker, (GROUP, "g", [(HEARTBEAT, SET, "7000")])) == OK
    async with group_broker(tmp_path, keeps=True) as broker:
        assert (await Member(broker, "m").join("t")).heartbeat_interval_ms == 7_000


async def test_a_default_of_groups_that_a_broker_can_change_while_it_runs_shows_each_layer(tmp_path: Path) -> None:
    # As DynamicGroupConfigIntegrationTest of Kafka 4.3.1.
    interval, key = "consumer.assignment.interval.ms", "group.consumer.assignment.interval.ms"
    dynamic, dynamic_default, static, default, of_group = 2, 3, 4, 5, 8
    async with broker_of_groups(tmp_path, group_consumer_assignment_interval_ms="2000") as broker:

        async def shown() -> list[Any]:
            describe = {
                "api": "DescribeConfigs",
                "version": 4,
                "synonyms": True,
                "resources": [[GROUP, "g", [interval]]],
            }
            ((_, _, _, _, ((_, value, *_, synonyms),)),) = await played(broker, describe)
            return [value, *((name, source) for name, _, source in synonyms)]

        async def until_shown(wanted: list[Any]) -> None:
            with trio.fail_after(DEADLINE_S):
                while await shown() != wanted:
                    await trio.lowlevel.checkpoint()

        layers = [(key, static), (key, default)]
        assert await shown() == ["2000", *layers]
        for resource, name, value, layer in (
            ((BROKER, ""), key, "4000", (key, dynamic_default)),
            ((BROKER, "1"), key, "5000", (key, dynamic)),
            ((GROUP, "g"), interval, "3000", (interval, of_group)),
        ):
            assert await change(broker, (*resource, [(name, SET, value)])) == OK
            layers.insert(0, layer)
            await until_shown([value, *layers])
        assert await change(broker, (GROUP, "g", [(interval, DELETE, None)])) == OK
        await until_shown(["5000", *layers[1:]])
        assert broker.coordinators.group_configs.of("g").assignment_interval_ms == 5_000
        ((code, _),) = await change(broker, (BROKER, "1", [(key, SET, "20000")]))
        assert code == ErrorCode.INVALID_REQUEST
