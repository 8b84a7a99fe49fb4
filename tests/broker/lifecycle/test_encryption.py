"""Brokers that talk TLS with each other: requests pass, and a broker that is not trusted gets none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.brokers.hosted import until
from tests.support.brokers.running_cluster import RunningCluster, running_cluster
from tests.support.network.certificates import Authority
from tests.support.network.tls_transport import authority

DEADLINE_S = 20


def keys(directory: Path) -> dict[str, str]:
    return {
        "listener_security_protocol_map": "PLAINTEXT:SSL",
        "ssl_client_auth": "required",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(directory / "server.pem"),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(directory / "ca.pem"),
        "controller_socket_timeout_ms": "5000",
        "controlled_shutdown_max_retries": "0",
    }


async def all_know(cluster: RunningCluster, *ids: int) -> None:
    """Each broker has received the controller's metadata, which names all."""
    for broker in list(cluster.brokers.values()):
        assert await broker.metadata.wait_until(lambda snapshot: set(snapshot.brokers) == set(ids), DEADLINE_S)


async def test_brokers_reach_each_other_over_tls_with_certificates(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 0, 1, **keys(authority().directory)) as cluster:
        await all_know(cluster, 0, 1)
        protocols = {
            connection.security_protocol
            for broker in cluster.brokers.values()
            for connection in broker.server._connections.values()
        }
        assert protocols == {"SSL"}
        principals = {
            str(connection.principal)
            for broker in cluster.brokers.values()
            for connection in broker.server._connections.values()
        }
        assert principals == {"User:CN=server"}


@pytest.mark.parametrize(
    ("address", "algorithm", "is_refused"),
    [("127.0.0.9", "https", True), ("127.0.0.9", "", False)],
    ids=["another host", "host not checked"],
)
async def test_the_certificate_of_another_broker_names_its_host(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, address: str, algorithm: str, is_refused: bool
) -> None:
    made = Authority(tmp_path / "certificates")
    made.issue("server", address)
    settings = keys(made.directory) | {"ssl_endpoint_identification_algorithm": algorithm}
    async with running_cluster(tmp_path, 0, 1, **settings) as cluster:
        if not is_refused:
            await all_know(cluster, 0, 1)
            return
        await until(lambda: "the peer's certificate is not accepted: IP address mismatch" in caplog.text)
