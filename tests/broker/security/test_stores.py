"""TLS listeners of a whole broker: requests, principals, mistakes at the start, stores that change."""

from __future__ import annotations

import logging
import os
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.config_repository import ConfigRepository
from kpybroker.broker.handlers.configuration.alter import incremental_alter
from kpybroker.broker.handlers.configuration.describe import ConfigResourceType
from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.network.tls_settings import TlsError
from kpybroker.broker.network.tls_stream import TlsStream, new_scratch
from kpybroker.broker.security import stores
from kpybroker.broker.security.stores import ListenerTls
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.dynamic import AlterConfigOp, OpType, validate_dynamic
from kpybroker.config.sources.passwords import PasswordEncoder
from kpybroker.config.values import ConfigError
from kpybroker.wire import znodes
from kpybroker.wire.messages.metadata import MetadataRequest
from tests.support.brokers.running_broker import running_broker
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.echo_server import Client
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient
from tests.support.network.tls_transport import authority, client_context


def stored(name: str) -> Path:
    """A file of the authority, which is made for the first test that asks."""
    return authority().directory / name


def keys(**changed: str) -> dict[str, str]:
    return {
        "listeners": "SSL://127.0.0.1:9093",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stored("server.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stored("ca.pem")),
        **{name.replace("_", "."): value for name, value in changed.items()},
    }


def running(directory: Path, transport: MemoryTransport, **changed: str) -> Any:
    settings: dict[str, Any] = keys(**changed)
    return running_broker(directory, transport=transport, **settings)


async def connect(transport: MemoryTransport, context: ssl.SSLContext | None = None) -> RawClient:
    plain = await transport.connect("127.0.0.1", 9093, 5)
    stream = TlsStream(plain, context or client_context(), new_scratch(), "127.0.0.1")
    await stream.handshake(trio.Lock())
    return RawClient(Client(stream), "raw")


async def metadata(client: RawClient) -> Any:
    return await client.ask(MetadataRequest(topics=[]), 12)


def principals(broker: Broker) -> list[str]:
    return [str(connection.principal) for connection in broker.server._connections.values()]


async def test_a_client_is_served_on_a_tls_listener(tmp_path: Path) -> None:
    transport = MemoryTransport()
    async with running(tmp_path, transport) as broker:
        client = await connect(transport)
        response = await metadata(client)
        assert [(one.host, one.port) for one in response.brokers] == [("127.0.0.1", 9093)]
        assert principals(broker) == ["User:ANONYMOUS"]


@pytest.mark.parametrize(
    ("rules", "principal"),
    [("DEFAULT", "User:CN=client"), ("RULE:^CN=(.*)$/$1/U", "User:CLIENT")],
)
async def test_the_certificate_of_a_client_names_its_principal(tmp_path: Path, rules: str, principal: str) -> None:
    transport = MemoryTransport()
    async with running(tmp_path, transport, ssl_client_auth="required", ssl_principal_mapping_rules=rules) as broker:
        await metadata(await connect(transport, client_context("client")))
        assert principals(broker) == [principal]


async def test_clients_without_a_fitting_certificate_are_refused_with_a_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = MemoryTransport()
    settings = {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^O=.*$/x/"}
    async with running(tmp_path, transport, **settings) as broker:
        for context in (None, client_context("client")):
            for _ in range(2):
                client = await connect(transport, context)
                with pytest.raises((OSError, AttributeError)):
                    assert (await metadata(client)).brokers
        plain = await transport.connect("127.0.0.1", 9093, 5)
        await plain.send_parts([b"\0\0\0\x10\0\x12\0\3"])
        assert await plain.receive_into(memoryview(bytearray(10))) == 0
        assert principals(broker) == []
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line.partition(": ")[2][:30] for line in lines] == [
        "the client shows no certificat",
        "no rule of ssl.principal.mappi",
        "plain-text Kafka request on a ",
    ]


async def test_a_handshake_has_a_time_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "HANDSHAKE_S_MAX", 0.05)
    transport = MemoryTransport()
    async with running(tmp_path, transport):
        silent = await transport.connect("127.0.0.1", 9093, 5)
        assert await silent.receive_into(memoryview(bytearray(10))) == 0
    assert "has not completed the TLS handshake within 0.05 s" in caplog.text


async def start_fails(directory: Path, **changed: str) -> StartupError:
    with pytest.raises(StartupError) as raised:
        async with running(directory, MemoryTransport(), **changed):
            pass
    return raised.value


async def test_bad_input_ends_the_start_with_cause_and_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p12 = {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": str(stored("server.p12"))}
    mistakes: list[tuple[dict[str, str], str]] = [
        ({**p12, "ssl_keystore_password": "wrong1"}, "its password is wrong"),
        ({"ssl_keystore_location": ""}, "there is no key store"),
        ({"ssl_keystore_location": "/no/such.pem"}, "No such file"),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "TLS 1.2 and 1.3"),
        ({"ssl_principal_mapping_rules": "RULE:("}, "Invalid rule"),
        ({"ssl_keystore_password": "x"}, "a PEM file has none"),
        ({"ssl_keystore_key": "x"}, "inside the configuration"),
    ]
    for number, (changed, cause) in enumerate(mistakes):
        error = await start_fails(tmp_path / str(number), **changed)
        assert error.exit_code == EXIT_CONFIG
        assert cause in error.cause
        assert error.fix
        assert "wrong1" not in error.cause + error.fix


def config(**changed: str) -> BrokerConfig:
    return BrokerConfig(keys(**changed))


def test_a_key_for_one_listener_takes_precedence() -> None:
    own = {"listener.name.ssl.ssl.keystore.location": str(stored("client.pem"))}
    made = ListenerTls(BrokerConfig(keys(ssl_keystore_location="/no/such") | own), "SSL")
    assert made.listener == "SSL"


def test_on_sasl_ssl_a_plain_client_auth_asks_for_nothing() -> None:
    """KIP-684: it would ask clients for a certificate that they did not need before."""
    changed = {"listeners": "SASL_SSL://:9", "ssl.client.auth": "required"}
    shared = BrokerConfig(keys() | changed | {"security.inter.broker.protocol": "SASL_SSL"})
    assert stores.Settings(shared, "SASL_SSL").client_auth == "none"
    own = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    assert stores.Settings(BrokerConfig({**shared.static, **own}), "SASL_SSL").client_auth == "required"


def test_pem_text_in_the_configuration_serves() -> None:
    text = (stored("server.pem")).read_text()
    changed = {"ssl.keystore.key": text, "ssl.keystore.certificate.chain": text, "ssl.keystore.location": ""}
    ListenerTls(BrokerConfig(keys() | changed), "SSL")


# --- stores that change


PREFIX = "listener.name.ssl."


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A key store that a test may replace."""
    return Path(shutil.copy(stored("server.pem"), tmp_path / "store.pem"))


async def fingerprint(transport: MemoryTransport) -> bytes:
    """The certificate that new connections are shown."""
    context = client_context()
    client = await connect(transport, context)
    stream = client.client.stream
    assert isinstance(stream, TlsStream)
    assert stream.peer_certificate is not None
    client.close()
    return stream.peer_certificate


async def test_a_new_store_serves_new_connections_and_open_ones_go_on(tmp_path: Path, store: Path) -> None:
    transport = MemoryTransport()
    async with running(tmp_path / "logs", transport, ssl_keystore_location=str(store)) as broker:
        old, open_one = await fingerprint(transport), await connect(transport)
        renewed = renew(tmp_path)
        props = {PREFIX + "ssl.keystore.location": str(renewed), PREFIX + "ssl.keystore.type": "PEM"}
        validate_dynamic(broker.config, props, per_broker=True)
        await broker.configs.write(znodes.CONFIG_BROKERS, "0", props)
        assert await fingerprint(transport) != old
        assert (await metadata(open_one)).brokers


def renew(directory: Path) -> Path:
    """Another certificate of the same subject, by the same authority."""
    pem, _ = authority().issue("renewed", subject="/CN=server")
    return Path(shutil.copy(pem, directory / "renewed.pem"))


async def test_a_file_that_was_replaced_is_read_when_the_configuration_is_written_again(
    tmp_path: Path, store: Path
) -> None:
    transport = MemoryTransport()
    props = {PREFIX + "ssl.keystore.location": str(store), PREFIX + "ssl.keystore.type": "PEM"}
    async with running(tmp_path / "logs", transport, ssl_keystore_location=str(store)) as broker:
        await broker.configs.write(znodes.CONFIG_BROKERS, "0", props)
        old = await fingerprint(transport)
        shutil.copy(renew(tmp_path), store)
        await broker.configs.write(znodes.CONFIG_BROKERS, "0", props)
        assert await fingerprint(transport) != old


async def test_a_bad_store_is_refused_and_the_old_one_serves(
    tmp_path: Path, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = MemoryTransport()
    async with running(tmp_path / "logs", transport, ssl_keystore_location=str(store)) as broker:
        old = await fingerprint(transport)
        for bad, reported in {
            "/no/such.pem": "No such file",
            str(stored("client.pem")): "DistinguishedName does not match",
        }.items():
            props = {PREFIX + "ssl.keystore.location": bad, PREFIX + "ssl.keystore.type": "PEM"}
            with pytest.raises(ConfigError, match=reported):
                validate_dynamic(broker.config, props, per_broker=True)
            await broker.configs.write(znodes.CONFIG_BROKERS, "0", props)  # as a tool that writes into ZooKeeper
            assert await fingerprint(transport) == old
            assert "keeps its old TLS settings" in caplog.text


def test_another_subject_is_accepted_where_dn_changes_are_allowed() -> None:
    made = ListenerTls(config(ssl_allow_dn_changes="true"), "SSL")
    made.check(config(ssl_allow_dn_changes="true", ssl_keystore_location=str(stored("client.pem"))))


def test_names_that_a_new_certificate_lacks_are_refused(tmp_path: Path) -> None:
    other = Authority(tmp_path)
    other.issue("server", "127.0.0.9")
    made = ListenerTls(config(), "SSL")
    with pytest.raises(TlsError, match=r"lacks 127\.0\.0\.1"):
        made.check(config(ssl_keystore_location=str(tmp_path / "server.pem")))


def test_passwords_are_in_no_text() -> None:
    settings = stores.Settings(config(ssl_keystore_password=PASSWORD), "SSL")
    assert PASSWORD not in repr(settings)


async def test_a_password_of_a_store_is_kept_encrypted_and_used(tmp_path: Path) -> None:
    """As `kafka-configs --alter` does it: one request with the location and the password."""
    transport = MemoryTransport()
    _, renewed = authority().issue("renewed-p12", subject="/CN=server")
    async with running(tmp_path / "logs", transport, password_encoder_secret="encoder-secret") as broker:
        old = await fingerprint(transport)
        values = {"location": str(renewed), "type": "PKCS12", "password": PASSWORD}
        ops = [AlterConfigOp(f"{PREFIX}ssl.keystore.{key}", OpType.SET, text) for key, text in values.items()]
        await incremental_alter(broker, ConfigResourceType.BROKER, "0", ops, validate_only=False)
        assert await fingerprint(transport) != old
        stored = await broker.configs.read(znodes.CONFIG_BROKERS, "0")
        assert PASSWORD not in str(stored)
        assert "encryptedPassword:" in stored[f"{PREFIX}ssl.keystore.password"]
        delete = AlterConfigOp("message.max.bytes", OpType.DELETE, None)
        await incremental_alter(broker, ConfigResourceType.BROKER, "0", [delete], validate_only=False)
        assert broker.config.dynamic_broker[f"{PREFIX}ssl.keystore.password"] == PASSWORD


async def test_passwords_are_encoded_again_after_a_change_of_the_secret(tmp_path: Path) -> None:
    key = f"{PREFIX}ssl.truststore.password"
    stored = {key: PasswordEncoder("old").encode("geheim", os.urandom)}
    async with running(tmp_path / "a", MemoryTransport()) as broker:
        await broker.configs.write(znodes.CONFIG_BROKERS, "0", stored)
        assert key not in broker.config.dynamic_broker
        broker.config.static |= {"password.encoder.secret": "new", "password.encoder.old.secret": "old"}
        broker.config.set_dynamic({}, {})
        await ConfigRepository(broker).start()
        assert PasswordEncoder("new").decode((await broker.configs.read(znodes.CONFIG_BROKERS, "0"))[key]) == "geheim"
        assert broker.config.dynamic_broker[key] == "geheim"
