"""DescribeCluster 0-2."""

from __future__ import annotations

import pytest

from kpybroker.broker.handlers.cluster import describe_cluster
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.describe_cluster import DescribeClusterRequest
from tests.support.brokers.control_broker import Denying, call, running_broker

ALL_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_cluster_controller_and_brokers(version: int) -> None:
    async with running_broker(broker_rack="r1") as broker:
        response = await call(broker, describe_cluster, DescribeClusterRequest(), version)
    assert (response.cluster_id, response.controller_id, response.error_code) == ("a-cluster", 0, 0)
    assert [(b.broker_id, b.host, b.port, b.rack) for b in response.brokers] == [(0, "reached.example", 19092, "r1")]
    assert response.cluster_authorized_operations == -(2**31)


async def test_no_broker_is_fenced() -> None:
    async with running_broker() as broker:
        response = await call(broker, describe_cluster, DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert [(broker.broker_id, broker.is_fenced) for broker in response.brokers] == [(0, False)]


async def test_authorized_operations() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    denying = Denying([(Operation.DESCRIBE, ResourceType.CLUSTER, None)])
    async with running_broker() as broker:
        allowed = await call(broker, describe_cluster, request, 1)
        denied = await call(broker, describe_cluster, request, 1, authorizer=denying)
    assert allowed.cluster_authorized_operations == ALL_OPERATIONS
    assert denied.cluster_authorized_operations == 0


async def test_a_controller_that_is_not_listed_is_not_named() -> None:
    async with running_broker(
        listeners="A://127.0.0.1:1", listener_security_protocol_map="A:PLAINTEXT", inter_broker_listener_name="A"
    ) as broker:
        response = await call(broker, describe_cluster, DescribeClusterRequest(), 1)
    assert (response.controller_id, response.brokers) == (-1, [])


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_other_endpoint_types(endpoint_type: int, code: ErrorCode) -> None:
    async with running_broker() as broker:
        response = await call(broker, describe_cluster, DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert response.error_code == code
