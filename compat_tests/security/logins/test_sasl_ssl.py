"""Logins inside TLS: SASL_SSL listeners, with every client, and between brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import (
    CLIENTS,
    MECHANISMS,
    PASSWORD,
    USER,
    Login,
    Sided,
    broker_keys,
    java_file,
    set_scram,
    stores,
)
from compat_tests.support.quick import create_topic
from compat_tests.support.tools import VERSIONS, Tools
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port


@pytest.fixture(scope="module")
def sided(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sided, str]]:
    """(a broker whose `sasl` listener is SASL_SSL and also that between brokers, the authority's certificate)"""
    authority = Authority(tmp_path_factory.mktemp("sasl-ssl"))
    one = Sided(launcher.unstarted(), free_port())
    keys = broker_keys(one.broker, one.sasl_port)
    keys = {name.replace("sasl_plaintext", "sasl_ssl"): value for name, value in keys.items()}
    one.broker.configure(
        {
            **keys,
            "listeners": keys["listeners"].replace("SASL_PLAINTEXT", "SASL_SSL"),
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            **stores(authority),
        }
    )
    one.broker.start()
    set_scram(Tools("3.9.1", one.plain), USER, PASSWORD)
    yield one, str(authority.certificate)
    one.broker.service.kill()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_logs_in_inside_tls(sided: tuple[Sided, str], name: str, client: str, mechanism: str) -> None:
    one, ca = sided
    create_topic(one.plain, name)
    assert CLIENTS[client](Login(one.sasl, mechanism, ca=ca), name, "hello") == "hello"


@pytest.mark.parametrize("version", VERSIONS)
def test_kafkas_console_clients_log_in_inside_tls(
    sided: tuple[Sided, str], name: str, tmp_path: Path, version: str
) -> None:
    one, ca = sided
    create_topic(one.plain, name)
    tools, config = Tools(version, one.sasl), java_file(tmp_path, "SCRAM-SHA-512", ca=ca)
    tools.run("console-producer", "--topic", name, "--producer.config", config, stdin="hello\n")
    read = tools.run(
        "console-consumer", "--topic", name, "--from-beginning", "--max-messages", "1", "--consumer.config", config
    )
    assert read.lines == ["hello"]


def test_a_wrong_password_is_refused_inside_tls(sided: tuple[Sided, str], name: str) -> None:
    one, ca = sided
    create_topic(one.plain, name)
    with pytest.raises(PermissionError, match="Invalid username or password"):
        CLIENTS["confluent"](Login(one.sasl, "PLAIN", password="wrong", ca=ca), name, "hello")
