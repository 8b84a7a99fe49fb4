"""Profiles as files, and what overrides them."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from kpybroker.client.connect import errors, profiles
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import (
    DEFAULT_BOOTSTRAP,
    ENVIRONMENT,
    REGISTRY_ENVIRONMENT,
    Connection,
    Registry,
    load,
)


@pytest.fixture(autouse=True)
def own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(errors, "_secrets", set())
    for name in (ENVIRONMENT, REGISTRY_ENVIRONMENT, profiles.ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "kpybroker"


def test_the_flag_overrides_the_environment_and_that_the_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profiles.chosen(None) is None
    for name in ("a", "b", "c"):
        profiles.save(name, {"bootstrap.servers": f"{name}:1"})
    profiles.use("a")
    assert profiles.chosen(None) == "a"
    monkeypatch.setenv(profiles.ENVIRONMENT, "b")
    assert profiles.chosen(None) == "b"
    assert profiles.chosen("c") == "c"
    assert profiles.chosen("none") is None
    monkeypatch.setenv(profiles.ENVIRONMENT, "")
    assert profiles.chosen(None) is None


def test_options_and_the_environment_override_a_profile_key_by_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profiles.save("p", {"bootstrap.servers": "p:1, q:2", "security.protocol": "SSL", "client.id": "p"})
    file = tmp_path / "c.properties"
    file.write_text("client.id=file\nlinger.ms=7\n")
    assert load(Connection()).bootstrap == DEFAULT_BOOTSTRAP
    found = load(Connection(profile="p"))
    assert (found.bootstrap, found.protocol, found.source) == ("p:1,q:2", "SSL", "profile p")
    merged = load(Connection(None, str(file), ("linger.ms=8",), profile="p")).properties
    assert merged == {"security.protocol": "SSL", "client.id": "file", "linger.ms": "8"}
    monkeypatch.setenv(ENVIRONMENT, "env:1")
    assert load(Connection(profile="p")).bootstrap == "env:1"
    assert load(Connection(None, None, ("bootstrap.servers=x:1",), profile="p")).bootstrap == "x:1"
    assert load(Connection("flag:1", None, ("bootstrap.servers=x:1",), profile="p")).bootstrap == "flag:1"


def test_a_registry_is_found_in_the_same_order_and_its_login_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles.save("p", {"schema.registry.url": "http://p", "basic.auth.user.info": "u:secret"})
    assert load(Connection()).registry is None
    assert load(Connection(profile="p")).registry == Registry("http://p", "u:secret")
    assert load(Connection(profile="p")).properties == {}
    assert errors.hide("u:secret") == "***"
    monkeypatch.setenv(REGISTRY_ENVIRONMENT, "http://env")
    assert load(Connection(profile="p")).registry == Registry("http://env")
    own = ("schema.registry.url=http://x", "schema.registry.basic.auth.user.info=v:w")
    assert load(Connection(options=own, profile="p")).registry == Registry("http://x", "v:w")


def test_a_registry_may_take_the_login_of_the_cluster() -> None:
    own = ("schema.registry.url=http://x", "basic.auth.credentials.source=SASL_INHERIT")
    login = ("sasl.username=me", "sasl.password=secret")
    assert load(Connection(options=own)).registry == Registry("http://x")
    assert load(Connection(options=own + login)).registry == Registry("http://x", "me:secret")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_only_its_user_can_read_it(own_directory: Path) -> None:
    file = profiles.save("p", {"sasl.password": "secret"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (own_directory, file.parent)} == {0o700}
    profiles.save("p", {"sasl.password": "other"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["p.properties"]


def test_what_was_written_is_read_back() -> None:
    given = {"a.b": "c = d : e", "ü": "\N{SNOWMAN} #!\\", "empty": ""}
    profiles.save("p", given)
    assert profiles.load("p") == given


@pytest.mark.parametrize("name", ["", "none", "../x", "a/b", ".x", "a b", "ü", "x" * 65, "a\n", "\udcff"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(CommandError) as caught:
        profiles.load(name)
    assert caught.value.exit_code == 2


def test_a_profile_that_is_missing_is_named_with_those_that_exist() -> None:
    profiles.save("here", {})
    with pytest.raises(CommandError, match="there is no profile gone; there are here"):
        profiles.load("gone")


def test_a_profile_that_is_deleted_is_used_no_more() -> None:
    profiles.save("p", {})
    profiles.use("p")
    profiles.delete("p")
    assert profiles.chosen(None) is None
    assert profiles.names() == []
    with pytest.raises(CommandError, match="cannot be deleted"):
        profiles.delete("p")


def test_a_damaged_file_is_named(own_directory: Path) -> None:
    file = profiles.save("p", {})
    file.write_bytes(b"a=\xff\xfe\n")
    with pytest.raises(CommandError, match="not UTF-8"):
        profiles.load("p")
    file.write_bytes(b"a=\\u12\n")
    with pytest.raises(CommandError, match="cannot be read"):
        profiles.load("p")


def test_a_directory_that_cannot_be_written_is_an_error(own_directory: Path) -> None:
    own_directory.parent.mkdir(parents=True)
    own_directory.write_text("a file")
    with pytest.raises(CommandError, match="cannot be written"):
        profiles.save("p", {})
    assert profiles.names() == []
    assert profiles.current() is None


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("sasl.password", "x", "***"),
        ("basic.auth.user.info", "u:x", "***"),
        ("sasl.jaas.config", "x", "***"),
        ("schema.registry.url", "https://u:x@h:1/p", "https://h:1/p"),
        ("schema.registry.url", "https://[x", "***"),
        ("bootstrap.servers", "a:1", "a:1"),
    ],
)
def test_secrets_are_not_shown(key: str, value: str, shown: str) -> None:
    assert profiles.shown(key, value) == shown
