"""`kpybroker profile`, as it is typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kpybroker.client.connect import errors
from kpybroker.client.connect.profiles import ENVIRONMENT
from kpybroker.client.connect.settings import ENVIRONMENT as BOOTSTRAP
from kpybroker.testing import Broker
from tests.support.programs.command_line import Result, invoke

Command = Callable[..., Result]


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs a command of a user with an empty directory of configuration."""
    monkeypatch.setenv("APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(errors, "_secrets", set())
    for name in (BOOTSTRAP, ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    return lambda *words, stdin=b"": invoke(monkeypatch, *words, stdin=stdin)


def test_a_profile_is_made_used_changed_and_deleted(profile: Command) -> None:
    assert profile("profile", "list").err == "there are no profiles\n"
    made = profile("profile", "set", "p", "bootstrap.servers=a:1", "security.protocol=SSL")
    assert (made.code, made.out) == (0, b"")
    assert "made profile p in " in made.err
    assert "to use it: kpybroker profile use p" in made.err
    assert profile("profile", "use", "p").err == "profile p is in use\n"
    assert profile("profile", "set", "p", "client.id=me").code == 0
    (row,) = profile("profile", "list", "--format", "json").json
    assert row == {"profile": "p", "in_use": True, "bootstrap": "a:1", "security": "SSL", "registry": None}
    shown = {"bootstrap.servers": "a:1", "client.id": "me", "security.protocol": "SSL"}
    assert profile("profile", "show", "--format", "json").json == shown
    assert profile("profile", "unset", "p", "client.id", "security.protocol").code == 0
    assert profile("profile", "show", "p", "--format", "json").json == {"bootstrap.servers": "a:1"}
    assert "would be deleted" in profile("profile", "delete", "p").err
    assert len(profile("profile", "list", "--format", "json").json) == 1
    assert profile("profile", "delete", "p", "--execute").code == 0
    assert profile("profile", "list", "--format", "json").json == []


def test_no_secret_is_printed(profile: Command, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.username=me\nsasl.password=hidden-1\nschema.registry.url=http://u:hidden-2@r/\n")
    outputs = [
        profile("profile", "set", "p", "--from", str(file), "basic.auth.user.info=u:hidden-3"),
        profile("profile", "set", "p", "--ask", "ssl.key.password", stdin=b"hidden-4\n"),
        profile("profile", "show", "p"),
        profile("profile", "show", "p", "--format", "json"),
        profile("profile", "list"),
        profile("profile", "list", "--format", "yaml"),
        profile("profile", "set", "p", "bootstrap.servers=a:b"),
        profile("profile", "set", "p", "sasl.jaas.config=hidden-5"),
    ]
    assert [one.code for one in outputs] == [0, 0, 0, 0, 0, 0, 2, 2]
    for one in outputs:
        assert b"hidden" not in one.out
        assert "hidden" not in one.err
    assert outputs[3].json["ssl.key.password"] == "***"
    assert outputs[3].json["sasl.username"] == "me"


def test_files_are_named_by_their_whole_path(profile: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    assert profile("profile", "set", "p", "ssl.truststore.location=ca.pem").code == 0
    assert profile("profile", "show", "p", "--format", "json").json == {
        "ssl.truststore.location": str(tmp_path / "ca.pem")
    }


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("set", "p"), "there is nothing to set"),
        (("set", "p", "x"), "x has no value"),
        (("set", "p", "=x"), "has no value"),
        (("set", "a/b", "x=y"), "no name of a profile"),
        (("set", "none", "x=y"), "no name of a profile"),
        (("set", "p", "bootstrap.servers=a:b"), "is not an address"),
        (("set", "p", "a=b\nc"), "not one line"),
        (("set", "p", "--from", "/no/such/file"), "cannot be read"),
        (("set", "p", "--ask", "sasl.password"), "no value for sasl.password"),
        (("set", "p", "ssl.truststore.location=/no/such"), "cannot be read"),
        (("show",), "no profile is in use"),
        (("show", "gone"), "there is no profile gone"),
        (("use", "gone"), "there is no profile gone"),
        (("unset", "gone", "x"), "there is no profile gone"),
        (("delete", "gone"), "there is no profile gone"),
        (("delete", "gone", "--execute"), "there is no profile gone"),
        (("show", ""), "it is empty"),
    ],
)
def test_what_cannot_be_done_is_refused(profile: Command, words: tuple[str, ...], named: str) -> None:
    result = profile("profile", *words)
    assert (result.code, result.out) == (2, b"")
    assert named in result.err
    assert profile("profile", "list", "--format", "json").json == []


def test_a_command_refuses_a_profile_that_is_missing_and_works_without(profile: Command) -> None:
    for name in ("gone", "a/b"):
        result = profile("topic", "list", "--profile", name)
        assert (result.code, result.out) == (2, b"")
        assert "profile" in result.err
    profile("profile", "set", "p", "no.such.key=1")
    unknown = profile("topic", "list", "--profile", "p")
    assert unknown.code == 2
    assert "no.such.key is a key of neither a Java client nor librdkafka (profile p)" in unknown.err


@pytest.mark.not_quick
def test_commands_use_it(profile: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics=["t"]) as broker:
        profile("profile", "set", "p", f"bootstrap.servers={broker.bootstrap_servers}")
        profile("profile", "use", "p")
        names = [row["name"] for row in json.loads(profile("topic", "list", "--format", "json").out)]
        assert names == ["t"]
        monkeypatch.setenv(BOOTSTRAP, "127.0.0.1:1")
        away = profile("topic", "list", "--timeout", "1")
        assert away.code == 1
        assert "127.0.0.1:1" in away.err
        assert profile("topic", "list", "-b", broker.bootstrap_servers).code == 0
