"""Subscriptions to client metrics (resource type CLIENT_METRICS), compared with Kafka 4.3.1's responses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.broker.handlers.configuration import alter_configs, describe_configs, incremental_alter_configs
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.core.client_metrics.configs import KEYS
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from tests.support.brokers.configured_broker import call
from tests.support.brokers.control_broker import Denying
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.requests.client_metrics_requests import CLIENT_METRICS, subscribe
from tests.support.requests.config_requests import SET, alter, change, incremental, legacy
from tests.support.requests.recorded_configs import played

RECORDED = json.loads((Path(__file__).parent / "kafka_4_3_1_client_metrics_configs.json").read_text())
"""Requests in the order in which Kafka was asked, each with its response."""

CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_every_recorded_request_gets_kafkas_response(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        for step in RECORDED:
            assert await played(broker, step) == step["response"], step


async def test_documentation_is_kafkas_sentence(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=CLIENT_METRICS, resource_name="s", configuration_keys=None
        )
        (result,) = (
            await ask(broker, DescribeConfigsRequest(resources=[resource], include_documentation=True), 4)
        ).results
        assert {one.name: one.documentation for one in result.configs} == {name: key.doc for name, key in KEYS.items()}


@pytest.mark.parametrize("name", ["s", ""])
async def test_a_broker_in_the_place_of_kafka_3_9_refuses_them(tmp_path: Path, name: str) -> None:
    text = "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
    refused = [(ErrorCode.INVALID_REQUEST, text)]
    async with running_broker(tmp_path, features={}) as broker:
        assert await change(broker, (CLIENT_METRICS, name, [("metrics", SET, "a")])) == refused
        assert await alter(broker, (CLIENT_METRICS, name, [("metrics", "a")])) == refused


async def test_rights_are_asked_of_the_cluster(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        denying = Denying({(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)})
        for handler, request in (
            (incremental_alter_configs, incremental((CLIENT_METRICS, "s", [("no", SET, "1")]))),
            (alter_configs, legacy((CLIENT_METRICS, "s", [("no", "1")]))),
        ):
            response = await call(broker, handler, request, 1, authorizer=denying)
            assert [one.error_code for one in response.responses] == [CLUSTER_REFUSED]
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name="s")
        denying = Denying({(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)})
        response = await call(
            broker, describe_configs, DescribeConfigsRequest(resources=[resource]), 4, authorizer=denying
        )
        assert [one.error_code for one in response.results] == [CLUSTER_REFUSED]


async def test_what_another_program_stored_is_shown_as_far_as_it_can_be(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await broker.configs.write(znodes.CONFIG_CLIENT_METRICS, "s", {"secret": "p", "metrics": "a"})
        await broker.configs.write(znodes.CONFIG_CLIENT_METRICS, "t", {"interval.ms": "often"})
        await broker.configs.write(znodes.CONFIG_CLIENT_METRICS, "u", {"metrics": "a,,b"})
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=None
                )
                for name in "stu"
            ]
        )
        s, t, u = (await ask(broker, request, 4)).results
        (unknown,) = (one for one in s.configs if one.name == "secret")
        assert (unknown.value, unknown.is_sensitive, unknown.config_source) == (None, True, 7)
        assert (t.error_code, t.error_message) == (
            ErrorCode.INVALID_CONFIG,
            "Invalid value often for configuration interval.ms: Not a number of type INT",
        )
        assert (u.error_code, u.error_message) == (
            ErrorCode.INVALID_CONFIG,
            "Configuration 'metrics' values must not be empty.",
        )


async def test_the_same_again_is_no_change(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        await subscribe(broker, "s", metrics="a")
        path = znodes.config_path(znodes.CONFIG_CLIENT_METRICS, "s")
        before = await broker.tree.exists(path)
        await subscribe(broker, "s", metrics="a")
        assert before is not None
        assert await broker.tree.exists(path) == before
