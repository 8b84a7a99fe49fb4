"""Stock clients log in over SASL_PLAINTEXT with each mechanism, and say why they could not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import CLIENTS, MECHANISMS, PASSWORD, USER, Login, Sided, java_file
from compat_tests.support.quick import create_topic
from compat_tests.support.tools import VERSIONS, Tools


@pytest.fixture(scope="module")
def sided(launcher: Launcher) -> Iterator[Sided]:
    one = Sided(launcher.unstarted())
    one.start()
    yield one
    one.broker.service.kill()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_logs_in_writes_and_reads(sided: Sided, name: str, client: str, mechanism: str) -> None:
    create_topic(sided.plain, name)
    assert CLIENTS[client](Login(sided.sasl, mechanism), name, "hello") == "hello"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_kafkas_console_clients_log_in(sided: Sided, name: str, tmp_path: Path, version: str, mechanism: str) -> None:
    create_topic(sided.plain, name)
    tools, config = Tools(version, sided.sasl), java_file(tmp_path, mechanism)
    tools.run("console-producer", "--topic", name, "--producer.config", config, stdin="hello\n")
    read = tools.run(
        "console-consumer", "--topic", name, "--from-beginning", "--max-messages", "1", "--consumer.config", config
    )
    assert read.lines == ["hello"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", ["confluent", "kcat"])
def test_librdkafka_says_that_the_password_is_wrong(sided: Sided, name: str, client: str, mechanism: str) -> None:
    create_topic(sided.plain, name)
    text = "Invalid username or password" if mechanism == "PLAIN" else "due to invalid credentials with SASL mechanism"
    with pytest.raises(PermissionError, match=text):
        CLIENTS[client](Login(sided.sasl, mechanism, password="wrong"), name, "hello")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", [USER, "mallory"])
def test_javas_client_says_that_user_or_password_are_wrong(
    sided: Sided, tmp_path: Path, mechanism: str, user: str
) -> None:
    config = java_file(tmp_path, mechanism, user, "wrong")
    result = Tools("3.9.1", sided.sasl).run("topics", "--list", "--command-config", config, check=False)
    text = "Invalid username or password" if mechanism == "PLAIN" else "due to invalid credentials with SASL mechanism"
    assert result.code
    assert "SaslAuthenticationException" in result.out + result.err
    assert text in result.out + result.err


def test_javas_client_says_which_mechanisms_there_are(sided: Sided, tmp_path: Path) -> None:
    config = Path(java_file(tmp_path, "PLAIN"))
    text = config.read_text().replace("sasl.mechanism=PLAIN", "sasl.mechanism=OAUTHBEARER")
    module = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=a;"
    )
    handler = (
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
    )
    lines = [line for line in text.splitlines() if not line.startswith("sasl.jaas.config")]
    config.write_text("\n".join([*lines, f"sasl.jaas.config={module}", f"sasl.login.callback.handler.class={handler}"]))
    result = Tools("3.9.1", sided.sasl).run("topics", "--list", "--command-config", str(config), check=False)
    assert result.code
    assert "UnsupportedSaslMechanismException" in result.out + result.err
    for mechanism in MECHANISMS:
        assert mechanism in result.out + result.err


def test_a_client_without_sasl_gets_nothing_from_a_sasl_listener(sided: Sided, tmp_path: Path) -> None:
    settings = tmp_path / "client.properties"
    settings.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
    result = Tools("3.9.1", sided.sasl).run("topics", "--list", "--command-config", str(settings), check=False)
    assert result.code
    log = sided.broker.service.output()
    if sided.broker.kind == "kpybroker":
        assert "set security.protocol=SASL_PLAINTEXT and sasl.mechanism in the client" in log


def test_no_secret_is_in_the_log(sided: Sided) -> None:
    """Last in this module."""
    log = sided.broker.service.output()
    assert PASSWORD not in log
    assert "alice-secret" not in log
    assert "admin-secret" not in log
