"""The mechanisms that a configuration makes, and the two lines for what it cannot make."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kpybroker.broker.lifecycle.errors import EXIT_CONFIG, StartupError
from kpybroker.broker.security.logins import FRAME_BYTES_MAX, ListenerLogins, LoginConfigError, Sources
from kpybroker.broker.security.scram_users import ScramUsers
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn, LoginFailed
from tests.support.brokers.sasl_broker import PLAIN_MODULE, SETTINGS, sasl_broker
from tests.support.network.memory_transport import MemoryTransport

PLAIN = "listener.name.sasl.plain.sasl.jaas.config"
CALLBACK = "listener.name.sasl.plain.sasl.server.callback.handler.class"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> str:
    """The module that holds the functions to name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.delitem(sys.modules, "checks", raising=False)
    return "checks"


def logins(**keys: str) -> ListenerLogins:
    return ListenerLogins(BrokerConfig({**SETTINGS, **keys}), "SASL", Sources(ScramUsers()))


def step(made: ListenerLogins, token: bytes) -> bytes | LoggedIn:
    mechanism = made.mechanism("PLAIN")
    assert mechanism is not None
    return mechanism.begin().step(token, 0)


def test_the_mechanisms_that_are_enabled() -> None:
    made = logins()
    assert sorted(made.mechanism_names) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    for name in made.mechanism_names:
        mechanism = made.mechanism(name)
        assert mechanism is not None
        assert mechanism.name == name
        assert not mechanism.blocks
    assert made.mechanism("GSSAPI") is None
    only = logins(**{"listener.name.sasl.sasl.enabled.mechanisms": "PLAIN"})
    assert only.mechanism_names == ["PLAIN"]


def test_limits() -> None:
    made = logins()
    assert made.frame_bytes_max == FRAME_BYTES_MAX
    assert made.session_ms_max("PLAIN") == 0
    key = "listener.name.sasl.connections.max.reauth.ms"
    assert logins(**{"sasl.server.max.receive.size": "524288", key: "5"}).frame_bytes_max == 524288
    assert logins(**{key: "5", "connections.max.reauth.ms": "9"}).session_ms_max("PLAIN") == 5


def test_a_python_function_checks_passwords(checks: str) -> None:
    made = logins(**{CALLBACK: f"{checks}:check"})
    mechanism = made.mechanism("PLAIN")
    assert mechanism is not None
    assert mechanism.blocks
    assert step(made, b"\0eve\0eve-from-python") == LoggedIn(Principal("User", "eve"))
    with pytest.raises(LoginFailed, match="Invalid username or password"):
        step(made, b"\0alice\0alice-secret")


def test_a_python_function_that_fails_refuses(checks: str) -> None:
    with pytest.raises(LoginFailed, match="credentials for user could not be verified") as caught:
        step(logins(**{CALLBACK: f"{checks}:broken"}), b"\0eve\0geheim")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "cause", "fix"),
    [
        ({CALLBACK: "com.example.MyHandler"}, "is a Java class, and there is no JVM here", "=package.module:function"),
        ({CALLBACK: "no.such.module:f"}, "cannot be loaded: No module named", "=package.module:function"),
        ({CALLBACK: "checks:missing"}, "cannot be loaded: ", "=package.module:function"),
        ({CALLBACK: "checks:NO_FUNCTION"}, "is not a function", "=package.module:function"),
        (
            {"listener.name.sasl.scram-sha-256.sasl.server.callback.handler.class": "a.B"},
            "SCRAM reads its users from /config/users",
            "remove listener.name.sasl.scram-sha-256",
        ),
        ({PLAIN: 'x.Y required user_a="geheim";'}, "has the JAAS module x.Y, which is not for it", PLAIN_MODULE),
        ({PLAIN: 'x.Y required user_a="geheim'}, "malformed JAAS configuration", f"set {PLAIN}={PLAIN_MODULE}"),
        ({"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"}, "SASL mechanism DIGEST-MD5 of listener SASL is not", "PLAIN"),
        (
            {"listener.name.sasl.sasl.enabled.mechanisms": "", "inter.broker.listener.name": "PLAINTEXT"},
            "sasl.enabled.mechanisms is empty",
            "set sasl.enabled.mechanisms to one or more of PLAIN",
        ),
    ],
)
def test_what_cannot_be_made_has_a_cause_and_a_fix(checks: str, keys: dict[str, str], cause: str, fix: str) -> None:
    both = {"listeners": "SASL://127.0.0.1:9092,PLAINTEXT://127.0.0.1:9093"}
    with pytest.raises(LoginConfigError) as caught:
        logins(**(both | keys if "inter.broker.listener.name" in keys else keys))
    assert cause in caught.value.cause
    assert fix in caught.value.fix
    assert "geheim" not in caught.value.cause + caught.value.fix


@pytest.mark.parametrize(
    ("keys", "cause"),
    [
        ({PLAIN: 'x.Y required user_a="geheim'}, "malformed JAAS configuration"),
        ({PLAIN: f"{PLAIN_MODULE} user_a=geheim;"}, "brokers log in with PLAIN on listener SASL, but its JAAS module"),
        ({"kpybroker.scram.initial.users": "geheim"}, "kpybroker.scram.initial.users: user 1 cannot be read"),
    ],
)
async def test_the_start_ends_with_cause_and_fix(tmp_path: Path, keys: dict[str, str], cause: str) -> None:
    with pytest.raises(StartupError) as caught:
        async with sasl_broker(tmp_path, MemoryTransport(), **keys):
            pass
    assert caught.value.exit_code == EXIT_CONFIG
    assert cause in caught.value.cause
    assert caught.value.fix
    assert "geheim" not in caught.value.cause + caught.value.fix


def test_a_dynamic_change_makes_new_mechanisms_and_a_bad_one_keeps_the_old(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig(SETTINGS)
    made = ListenerLogins(config, "SASL", Sources(ScramUsers()))
    config.set_dynamic({PLAIN: f'{PLAIN_MODULE} user_dora="new";'}, {})
    assert step(made, b"\0dora\0new") == LoggedIn(Principal("User", "dora"))
    config.set_dynamic({PLAIN: "geheim"}, {})
    assert step(made, b"\0dora\0new") == LoggedIn(Principal("User", "dora"))
    assert "Listener SASL keeps its SASL mechanisms as they were: malformed JAAS" in caplog.text
    assert "geheim" not in caplog.text


def test_the_mechanism_between_brokers_must_be_enabled() -> None:
    with pytest.raises(ValueError, match=r"must be included in sasl\.enabled\.mechanisms"):
        BrokerConfig({**SETTINGS, "sasl.mechanism.inter.broker.protocol": "GSSAPI"})
