"""A file of users, and the login with one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from kpybroker.client.connect.errors import CommandError
from kpybroker.registry.api import users
from kpybroker.registry.api.app import make_app
from kpybroker.registry.api.forward import Forwarder
from kpybroker.registry.api.logins import Login
from tests.registry.conftest import Registry
from tests.support.programs.command_line import invoke


def test_only_the_right_password_comes_in(registry: Registry) -> None:
    middleware = [Middleware(Login, users={"alice": users.hashed("se:cret")})]
    http = TestClient(make_app(registry.service, Forwarder(), middleware=middleware), base_url="http://127.0.0.1")
    for _ in range(2):
        assert http.get("/subjects", auth=("alice", "se:cret")).status_code == 200
    for login in (None, ("alice", "secret"), ("bob", "se:cret"), ("", "")):
        response = http.get("/subjects", auth=login)
        assert response.status_code == 401
        assert response.json() == {"error_code": 401, "message": "Unauthorized"}
        assert response.headers["www-authenticate"].startswith("Basic")
    for header in ("Basic", "Basic !", "Basic YQ==", "Bearer x", "Basic \u00ff".encode()):
        assert http.get("/subjects", headers={"authorization": header}).status_code == 401


def test_users_are_added_and_get_other_passwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "users"
    for name, password in (("alice", "one"), ("bob", "two"), ("alice", "three")):
        result = invoke(
            monkeypatch, "registry", "--users-file", str(file), "--add-user", name, stdin=password.encode() + b"\n"
        )
        assert (result.code, result.err) == (0, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    known = users.load_users(str(file))
    assert users.is_right("three", known["alice"])
    assert not users.is_right("one", known["alice"])
    assert users.is_right("two", known["bob"])
    assert "three" not in file.read_text()


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"alice:secret\n", b"scrypt$1$2$3$4\n"])
def test_a_file_without_users_is_two_lines_and_shows_none_of_it(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "users"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        users.load_users(str(file))
    assert caught.value.exit_code == 2
    assert "secret" not in caught.value.cause
    result = invoke(monkeypatch, "registry", "--users-file", str(file))
    assert (result.code, len(result.err.splitlines())) == (2, 2)


@pytest.mark.parametrize(("name", "password"), [("a:b", "x"), ("a\n", "x"), ("a", "")])
def test_bad_users_are_refused(name: str, password: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        users.add_user(str(tmp_path / "users"), name, password)


def test_a_hash_that_cannot_be_read_lets_no_one_in() -> None:
    assert not users.is_right("", "scrypt$0$0$$")
    assert not users.is_right("", "plain")
