"""After the same scenario the znode tree is the one that real Kafka 3.9.1 leaves: every path, byte, version and ACL.

On an open ZooKeeper, on one that asks for credentials (SASL, `zookeeper.set.acl`), and on one behind TLS that knows
brokers by their certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient

from compat_tests.support.services import AS_KAFKA_3_9, Broker, ZooKeeper
from compat_tests.tree.scenario import Znode, differences, dump, tell
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

LOGIN_CONFIG = "-Djava.security.auth.login.config"


class Ensemble(NamedTuple):
    """A ZooKeeper and how it is reached: by brokers, and by kazoo."""

    address: str
    overrides: dict[str, str]
    options: Sequence[str]
    login: dict[str, Any]


@contextmanager
def running(directory: Path, *arguments: Any) -> Iterator[ZooKeeper]:
    server = ZooKeeper(directory, *arguments)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def open_to_all(directory: Path) -> Iterator[Ensemble]:
    with running(directory / "zookeeper") as server:
        yield Ensemble(server.connect, {}, (), {})


@contextmanager
def with_digest(directory: Path) -> Iterator[Ensemble]:
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    jaas = directory / "jaas.conf"
    jaas.write_text(
        f'Server {{ {module} user_kafka="it is \\"me\\""; }};\n'
        f'Client {{ {module} username="kafka" password="it is \\"me\\""; }};\n'
    )
    options = [f"{LOGIN_CONFIG}={jaas}"]
    provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    login = {"sasl_options": {"mechanism": "DIGEST-MD5", "username": "kafka", "password": 'it is "me"'}}
    with running(directory / "zookeeper", provider, options) as server:
        yield Ensemble(server.connect, {"zookeeper.set.acl": "true"}, options, login)


@contextmanager
def with_certificates(directory: Path) -> Iterator[Ensemble]:
    authority = Authority(directory / "certificates")
    authority.issue("server")
    pem, p12 = authority.issue("broker")
    port = free_port()
    settings = {
        "secureClientPort": str(port),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.keyStore.location": str(authority.directory / "server.p12"),
        "ssl.keyStore.password": PASSWORD,
        "ssl.trustStore.location": str(authority.certificate),
    }
    overrides = {
        "zookeeper.set.acl": "true",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(p12),
        "zookeeper.ssl.keystore.password": PASSWORD,
        "zookeeper.ssl.truststore.location": str(authority.certificate),
    }
    login = {"use_ssl": True, "ca": str(authority.certificate), "certfile": str(pem), "keyfile": str(pem)}
    with running(directory / "zookeeper", settings):
        yield Ensemble(f"127.0.0.1:{port}", overrides, (), login)


def tree_after_the_scenario(kind: str, directory: Path, ensemble: Ensemble) -> dict[str, Znode]:
    chroot = f"{ensemble.address}/{directory.name}"
    in_its_place = {} if kind == "kafka" else AS_KAFKA_3_9
    overrides = {"offsets.topic.num.partitions": "3", **ensemble.overrides, **in_its_place}
    broker = Broker(kind, directory, chroot, overrides, ensemble.options)

    def connect() -> KazooClient:
        return KazooClient(chroot, **ensemble.login)

    broker.start()
    try:
        tell(broker.bootstrap, connect)
        running = dump(connect)
        broker.stop()
        stopped = dump(connect)
    finally:
        broker.service.kill()
    return running | {f"{path} (stopped)": znode for path, znode in stopped.items()}


@pytest.mark.parametrize(
    "access", [*(pytest.param(one, marks=pytest.mark.wide) for one in (open_to_all, with_digest)), with_certificates]
)
def test_the_tree_is_kafkas(request: pytest.FixtureRequest, tmp_path: Path, access: Callable[[Path], Any]) -> None:
    kind = request.config.getoption("--broker")
    with access(tmp_path) as ensemble:
        reference = tree_after_the_scenario("kafka", tmp_path / "reference", ensemble)
        compared = tree_after_the_scenario(kind, tmp_path / "compared", ensemble)
    assert len(reference) > 80
    assert None in {znode.data for znode in reference.values()}
    assert len({znode.acl for znode in reference.values()}) == (1 if access is open_to_all else 3)
    found = differences(reference, compared)
    assert not found, "\n".join(found)
