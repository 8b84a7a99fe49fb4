"""The `zookeeper.*` keys take effect, or the start refuses them with a fix; and failures of authentication."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle import errors
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.lifecycle.zookeeper_client import secure_acl, zookeeper_tree
from kpybroker.config.broker import BrokerConfig
from kpybroker.core import tree as t
from tests.support.brokers.running_broker import settings
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.ports import free_port
from tests.support.programs.zookeeper import zookeeper

JAAS = 'Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret"; };'


def refusal(**keys: str) -> str:
    props = {"zookeeper.connect": "127.0.0.1:1"} | {key.replace("_", "."): value for key, value in keys.items()}
    with pytest.raises(StartupError) as raised:
        zookeeper_tree(BrokerConfig(props))
    assert raised.value.exit_code == errors.EXIT_CONFIG
    return f"{raised.value.cause} {raised.value.fix}"


def test_acls_need_a_broker_that_authenticates(tmp_path: Path) -> None:
    assert "zookeeper.set.acl is true" in refusal(zookeeper_set_acl="true")
    other = tmp_path / "other.conf"
    other.write_text(JAAS.replace("Client", "KafkaServer"))
    assert "zookeeper.set.acl is true" in refusal(zookeeper_set_acl="true", kpybroker_jaas_config_file=str(other))


def test_an_empty_context_is_none_as_in_java(tmp_path: Path) -> None:
    empty = tmp_path / "empty.conf"
    empty.write_text("Client {};")
    zookeeper_tree(BrokerConfig({"zookeeper.connect": "127.0.0.1:1", "kpybroker.jaas.config.file": str(empty)}))
    assert "zookeeper.set.acl is true" in refusal(zookeeper_set_acl="true", kpybroker_jaas_config_file=str(empty))


def test_what_is_not_available_is_refused(tmp_path: Path) -> None:
    files = {
        "kerberos": "Client { com.sun.security.auth.module.Krb5LoginModule required; };",
        "nameless": "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=kafka; };",
        "garbled": "Client {",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert str(tmp_path / name) in refusal(kpybroker_jaas_config_file=str(tmp_path / name))
    assert "No such file" in refusal(kpybroker_jaas_config_file="/no/such/file")
    tls = {"zookeeper_ssl_client_enable": "true"}
    assert "keytool" in refusal(**tls, zookeeper_ssl_truststore_location="/etc/trust.jks")
    assert "zookeeper.ssl.crl.enable is true" in refusal(**tls, zookeeper_ssl_crl_enable="true")
    assert "zookeeper.ssl.ocsp.enable is true" in refusal(**tls, zookeeper_ssl_ocsp_enable="true")
    assert "is not a version of TLS" in refusal(**tls, zookeeper_ssl_protocol="SSLv3")


def test_acls_are_kafkas_by_kind_of_path() -> None:
    creator, readers = t.CREATOR_ALL_ACL, t.CREATOR_ALL_ACL + t.READ_ACL_UNSAFE
    expected = {
        "/consumers": t.OPEN_ACL_UNSAFE,
        "/consumers/g": readers,
        "/brokers/ids/0": readers,
        "/config/topics/t": readers,
        "/config/users": creator,
        "/config/users/alice": creator,
        "/config/brokers/0": creator,
        "/delegation_token/tokens/x": creator,
        "/some/chroot": readers,
    }
    assert {path: secure_acl(path) for path in expected} == expected


async def start(directory: Path, address: str, **keys: str) -> int:
    """The number of topics: zero, but reading them works."""
    props = settings(directory, zookeeper_connect=address, zookeeper_connection_timeout_ms="20000") | keys
    async with Broker.open(BrokerConfig(props), transport=MemoryTransport()) as broker:
        return len((await broker.tree.children("/brokers/topics")).names)


async def test_a_wrong_password_is_reported_in_two_lines(tmp_path: Path) -> None:
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    server_side = tmp_path / "server.conf"
    server_side.write_text(f'Server {{ {module} user_kafka="secret"; }};')
    jaas = tmp_path / "client.conf"
    options = [f"-Djava.security.auth.login.config={server_side}"]
    provider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
    with zookeeper(tmp_path / "zookeeper", jvm_options=options, authProvider__1=provider) as server:
        keys = {"zookeeper.set.acl": "true", "kpybroker.jaas.config.file": str(jaas)}
        jaas.write_text(JAAS)
        assert await start(tmp_path / "data", f"{server.address}/a/b", **keys) == 0
        jaas.write_text(JAAS.replace("secret", "other"))
        with trio.fail_after(60), pytest.raises(StartupError) as raised:
            await start(tmp_path / "data", f"{server.address}/a/b", **keys)
        assert raised.value.exit_code == errors.EXIT_COORDINATION
        assert "secret" not in raised.value.cause
        jaas.unlink()
        # A client that does not authenticate may read but not write.
        with trio.fail_after(60), pytest.raises(StartupError) as raised:
            await start(tmp_path / "data", f"{server.address}/a/b")
        assert "NoAuth" in raised.value.cause


async def test_a_server_without_a_trusted_certificate_is_refused(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others")
    ours.issue("server")
    port = free_port()
    lines = {
        "secureClientPort": str(port),
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl__keyStore__location": str(ours.directory / "server.p12"),
        "ssl__keyStore__password": PASSWORD,
        "ssl__clientAuth": "none",
    }
    tls = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.endpoint.identification.algorithm": "https"}
    with zookeeper(tmp_path / "zookeeper", **lines):
        trusted = {"zookeeper.ssl.truststore.location": str(ours.certificate)}
        assert await start(tmp_path / "data", f"127.0.0.1:{port}", **tls, **trusted) == 0
        stranger = {
            "zookeeper.ssl.truststore.location": str(others.certificate),
            "zookeeper.connection.timeout.ms": "1000",
        }
        with pytest.raises(StartupError) as raised:
            await start(tmp_path / "data", f"127.0.0.1:{port}", **tls, **stranger)
        assert raised.value.exit_code == errors.EXIT_COORDINATION
        assert "certificate" in raised.value.cause.lower()
