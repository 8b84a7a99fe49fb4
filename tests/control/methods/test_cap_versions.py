"""Capped versions: what clients are offered and refused, and that brokers go on among themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.requests.served.apis import CLIENT_METRICS, SERVED
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kpybroker.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from tests.control.methods.test_topology import refused
from tests.support.brokers.hosted_cluster import HostedCluster, eventually, hosted_cluster
from tests.support.brokers.running_broker import CLIENT, ask

DEADLINE_S = 60
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
ASKED = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="1")


async def api_versions(cluster: HostedCluster, broker: int, version: int) -> dict[int, tuple[int, int]]:
    response = await ask(cluster[broker], ASKED, version)
    assert response.error_code == ErrorCode.NONE
    return {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}


async def too_new(cluster: HostedCluster, broker: int) -> Any:
    """The response, in version 0, to a version of ApiVersions that is not served."""
    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 4, 7, "test")) + encode(ASKED, 4)
    response = await cluster[broker].dispatcher.respond(bytearray(frame), CLIENT)
    assert response.frame is not None
    return decode(ApiVersionsResponse, response.frame[8:], 0)


async def test_clients_are_offered_what_the_release_serves_and_nothing_else(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 2) as cluster:
        served = await cluster.call("cap_versions", as_version="2.4", broker=1)
        assert served["Fetch"] == [0, 11]
        assert "DescribeCluster" not in served
        offered = await api_versions(cluster, 1, 3)
        assert offered[ApiKey.FETCH] == (0, 11)
        assert offered[ApiKey.PRODUCE] == (0, 8)
        assert ApiKey.DESCRIBE_CLUSTER not in offered
        assert await api_versions(cluster, 0, 4) == {key: SERVED[key] for key in SERVED if key not in CLIENT_METRICS}
        with pytest.raises(ProtocolError, match="LIST_GROUPS version 4 is not served: versions are capped"):
            await ask(cluster[1], ListGroupsRequest(), 4)
        await ask(cluster[1], ListGroupsRequest(), 3)
        await ask(cluster[0], ListGroupsRequest(), 4)
        # A version that was used before is refused as well.
        await cluster.call("cap_versions", as_version="0.11.0", broker=1)
        with pytest.raises(ProtocolError):
            await ask(cluster[1], ListGroupsRequest(), 3)
        assert len(await cluster.call("cap_versions", broker=1)) == len(SERVED)
        await ask(cluster[1], ListGroupsRequest(), 3)


async def test_a_release_has_its_features_and_refuses_the_groups_of_newer_ones(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        for release, level in {None: 1, "4.0": 1, "3.9": 0, "4.3": 1}.items():
            await cluster.call("cap_versions", as_version=release)
            offered = await ask(cluster[0], ASKED, 4)
            shares = [] if release == "4.0" else [("share.version", 1), ("streams.version", 1)]
            has = [("group.version", 1), *shares, ("transaction.version", 2)] if level else []
            assert [(one.name, one.max_version) for one in offered.supported_features] == has
            assert [(one.name, one.max_version_level) for one in offered.finalized_features] == has
            assert offered.finalized_features_epoch == 0
            refused = ErrorCode.NONE if level else ErrorCode.UNSUPPORTED_VERSION
            joining = ConsumerGroupHeartbeatRequest(
                group_id="g", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
            )
            with trio.fail_after(DEADLINE_S):
                while (joined := await ask(cluster[0], joining, 0)).error_code in NOT_YET:
                    await ask(cluster[0], FindCoordinatorRequest(key_type=0, key="g"), 3)
            assert joined.error_code == refused
            asked = ConsumerGroupDescribeRequest(group_ids=["g"])
            if release != "3.9":  # which has no ConsumerGroupDescribe
                assert (await ask(cluster[0], asked, 0)).groups[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(("release", "named"), [("2.4", [(18, 0, 3)]), ("2.3", [])])
async def test_a_client_that_asks_in_a_newer_version_gets_what_the_release_says(
    tmp_path: Path, release: str, named: list[tuple[int, int, int]]
) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        await cluster.call("cap_versions", as_version=release)
        response = await too_new(cluster, 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == named


async def test_brokers_replicate_in_versions_that_clients_may_not_use(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, on_sockets=True) as cluster:
        await cluster.create_topic("orders", [0, 1, 2])
        await cluster.call("cap_versions", as_version="0.11.0")
        assert await cluster.produce("orders", b"1", broker=0, version=3) == ErrorCode.NONE
        await cluster.call("broker_down", broker=0)
        await eventually(lambda: cluster.state("orders")[0] in (1, 2), "another leader")
        await cluster.call("broker_up", broker=0)
        await eventually(lambda: cluster.state("orders")[2] == {0, 1, 2}, "the broker in the ISR again")
        with pytest.raises(ProtocolError):
            await cluster.produce("orders", b"2", broker=1)
        await cluster.call("reset")
        assert await cluster.produce("orders", b"2", broker=await cluster.leader("orders")) == ErrorCode.NONE


async def test_a_release_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with hosted_cluster(tmp_path, 1) as cluster:
        error = await refused(cluster, "cap_versions", as_version="4.4")
        assert error.cause == "cap_versions: there is no table of Kafka `4.4`"
        assert (await refused(cluster, "cap_versions", as_version="2.4", broker=5)).cause == "there is no broker 5"
        assert cluster.topology.holds.version_caps == {}
