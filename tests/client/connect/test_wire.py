"""Single requests over a socket: versions, logins, and what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Connection, Settings, load
from kpybroker.client.connect.wire import GROUP, WireBroker, WireCluster, WireError, connect
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.api_versions import ApiVersionsResponse
from kpybroker.wire.messages.find_coordinator import FindCoordinatorResponse
from kpybroker.wire.messages.metadata import MetadataRequest, MetadataResponse
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.network.ports import free_port
from tests.support.network.wire_server import Respond, bytes_server, kafka_server, versions

PASSWORD = "a-long-password"


def settings(address: tuple[str, int], *options: str, timeout_s: float = 5.0) -> Settings:
    return load(Connection(f"{address[0]}:{address[1]}", options=options, timeout_s=timeout_s))


def test_the_newest_version_of_both_sides_is_used() -> None:
    seen = []

    def metadata(request: Any, version: int) -> MetadataResponse:
        seen.append(version)
        return MetadataResponse(cluster_id="c")

    responses: Mapping[ApiKey, Respond] = {
        ApiKey.METADATA: metadata,
        ApiKey.API_VERSIONS: lambda request, version: versions({ApiKey.METADATA: (2, 5)}),
    }
    with kafka_server(responses) as address, connect(address, settings(address)) as broker:
        assert broker.request(ApiKey.METADATA, MetadataRequest(topics=[])).cluster_id == "c"
        assert seen == [5]
        with pytest.raises(CommandError, match="does not serve FindCoordinator"):
            broker.version_of(ApiKey.FIND_COORDINATOR)


def test_an_old_broker_responds_to_apiversions_in_version_0() -> None:
    def api_versions(request: Any, version: int) -> Any:
        if version == 0:
            return versions({3: (0, 1)})
        # a response of version 0, whatever version was asked for (KIP-511)
        body = b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\0"
        return len(body).to_bytes(4, "big") + body

    with kafka_server({ApiKey.API_VERSIONS: api_versions}) as address, connect(address, settings(address)) as broker:
        assert broker.versions == {3: (0, 1)}


def test_a_broker_without_a_common_version_is_named() -> None:
    responses: Mapping[ApiKey, Respond] = {ApiKey.API_VERSIONS: lambda request, version: versions({3: (90, 99)})}
    with (
        kafka_server(responses) as address,
        connect(address, settings(address)) as broker,
        pytest.raises(CommandError, match="serves versions 90 to 99 of Metadata"),
    ):
        broker.request(ApiKey.METADATA, MetadataRequest())


def test_what_a_connection_can_suffer() -> None:
    port = free_port()
    with pytest.raises(WireError, match=f"cannot connect to 127.0.0.1:{port}"):
        connect(("127.0.0.1", port), settings(("127.0.0.1", port)))
    for response, named in (
        (lambda said: b"", "closed the connection"),
        (lambda said: None, "does not respond"),
        (lambda said: b"HTTP/1.1 400 Bad Request\r\n", "does not speak Kafka's protocol"),
        (lambda said: b"\0\0\0\4\0\0\0\x63", "is to request 99"),
        (lambda said: b"\0\0\0\2\0\0", "cannot be read"),
    ):
        with bytes_server(response) as address, pytest.raises(WireError, match=named):
            connect(address, settings(address, timeout_s=0.3))


def login_server(mechanism: str, user: str = "alice") -> Mapping[ApiKey, Respond]:
    def handshake(request: Any, version: int) -> SaslHandshakeResponse:
        code = ErrorCode.NONE if request.mechanism == mechanism else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=[mechanism])

    def authenticate(request: Any, version: int) -> SaslAuthenticateResponse:
        if bytes(request.auth_bytes) == f"\0{user}\0{PASSWORD}".encode():
            return SaslAuthenticateResponse(error_message=None)
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return SaslAuthenticateResponse(error_code=code, error_message=f"no: {request.auth_bytes!r}")

    return {ApiKey.SASL_HANDSHAKE: handshake, ApiKey.SASL_AUTHENTICATE: authenticate}


LOGIN = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=alice", f"sasl.password={PASSWORD}")


def test_a_login_is_accepted_or_refused_with_its_reason() -> None:
    with kafka_server(login_server("PLAIN")) as address:
        connect(address, settings(address, *LOGIN)).close()
        with pytest.raises(CommandError, match="SASL_AUTHENTICATION_FAILED"):
            connect(address, settings(address, *LOGIN, "sasl.username=bob"))
    with (
        kafka_server(login_server("SCRAM-SHA-512")) as address,
        pytest.raises(CommandError, match="does not offer PLAIN but SCRAM-SHA-512"),
    ):
        connect(address, settings(address, *LOGIN))


def cluster_server(metadata: MetadataResponse, codes: list[int]) -> Mapping[ApiKey, Respond]:
    def coordinator(request: Any, version: int) -> FindCoordinatorResponse:
        found = FindCoordinatorResponse.Coordinator(key="g", node_id=7, error_code=codes.pop(0))
        return FindCoordinatorResponse(coordinators=[found])

    return {ApiKey.METADATA: lambda request, version: metadata, ApiKey.FIND_COORDINATOR: coordinator}


def test_a_coordinator_is_waited_for_and_found_by_its_id() -> None:
    metadata = MetadataResponse(cluster_id="c", controller_id=7)
    not_yet = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with kafka_server(cluster_server(metadata, [not_yet, not_yet, 0, 30])) as address:
        metadata.brokers = [MetadataResponse.MetadataResponseBroker(node_id=7, host=address[0], port=address[1])]
        with WireCluster(settings(address)) as cluster:
            assert cluster.coordinator("g", GROUP).node_id == 7
            with pytest.raises(CommandError, match="GROUP_AUTHORIZATION_FAILED"):
                cluster.coordinator("g", GROUP)
            with pytest.raises(CommandError, match="the cluster has no broker 9"):
                cluster.broker(9)


def test_the_next_bootstrap_server_is_tried() -> None:
    with kafka_server({ApiKey.METADATA: lambda request, version: MetadataResponse(cluster_id="c")}) as address:
        both = f"127.0.0.1:{free_port()},{address[0]}:{address[1]}"
        with WireCluster(load(Connection(both))) as cluster:
            assert cluster.cluster_id == "c"


def test_an_error_in_apiversions_is_no_list_of_apis() -> None:
    broken: Mapping[ApiKey, Respond] = {
        ApiKey.API_VERSIONS: lambda request, version: ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    }
    with kafka_server(broken) as address:
        broker = WireBroker(address, settings(address))
        assert broker.handshake() == {}
        broker.close()
