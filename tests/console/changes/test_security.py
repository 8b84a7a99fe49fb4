"""Users and quotas set and removed; ACLs of a cluster without. `tests/console/test_secured.py` has one with."""

from __future__ import annotations

import uuid

import pytest

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, RunCommand, rows_of
from tests.support.programs.command_line import invoke


@pytest.fixture
def name() -> str:
    return f"who-{uuid.uuid4().hex[:8]}"


def test_a_password_is_set_and_its_user_deleted(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def credentials() -> list[tuple[str, int]]:
        found = invoke(monkeypatch, "user", "list", "-b", broker.bootstrap_servers, "--format", "json").json
        return [(row["mechanism"], row["iterations"]) for row in found if row["user"] == name]

    browser = client(allow_changes=True)
    values = {"user": name, "mechanism": "SCRAM-SHA-256", "iterations": "5000"}
    page = previewed(browser, "user-set", **values).text
    assert "--password-file FILE" in command_of(page)
    assert 'type="password" name="password"' in page
    without = browser.post("/change/user-set", data=fields_of(page))
    assert without.status_code == 400
    assert "Password is missing" in without.text
    result = browser.post("/change/user-set", data={**fields_of(page), "password": "s3cret-" + name})
    assert rows_of(result.text, "Result")[0] == [name, "SCRAM-SHA-256", "5000", "set"]
    assert "s3cret" not in result.text
    assert credentials() == [("SCRAM-SHA-256", 5000)]
    gone = previewed(browser, "user-delete", user=name, mechanism="SCRAM-SHA-256").text
    assert done(browser, "user-delete", user=name, mechanism="SCRAM-SHA-256").status_code == 400
    assert done(browser, "user-delete", name, user=name, mechanism="SCRAM-SHA-256").status_code == 200
    assert credentials() == []
    assert run_command(command_of(gone)).code == 1  # there is none any more


@pytest.mark.parametrize(
    ("key", "field", "values"),
    [
        ("user-set", "user", {"user": ""}),
        ("user-set", "iterations", {"user": "a", "iterations": "17"}),
        ("user-set", "mechanism", {"user": "a", "mechanism": "PLAIN"}),
        ("user-delete", "user", {"user": "not-there"}),
        ("quota-set", "user", {"values": "producer_byte_rate=1"}),
        ("quota-set", "values", {"user": "a", "values": "producer_byte_rate"}),
        ("quota-set", "values", {"user": "a", "values": "no_such_quota=1"}),
        ("quota-set", "ip", {"user": "a", "ip": "127.0.0.1", "values": "producer_byte_rate=1"}),
        ("quota-unset", "keys", {"user": "not-there", "keys": "producer_byte_rate"}),
        ("acl-create", "principal", {"principal": ""}),
        ("acl-create", "name", {"principal": "User:a", "operations": "read"}),
        ("acl-create", "operations", {"principal": "User:a", "name": "t", "operations": "fly"}),
    ],
)
def test_bad_input_marks_its_field(client: MakeClient, key: str, field: str, values: dict[str, str]) -> None:
    page = previewed(client(allow_changes=True), key, **values)
    assert page.status_code == 400, page.text
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    for name, value in values.items():
        assert value in page.text, name


@pytest.mark.parametrize("user", ["", "(default)"])
def test_a_quota_is_set_and_removed(
    client: MakeClient,
    broker: Broker,
    name: str,
    user: str,
    run_command: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = user or name

    def values_now() -> list[float]:
        found = invoke(monkeypatch, "quota", "list", "-b", broker.bootstrap_servers, "--format", "json").json
        wanted = {"user": None if user == "(default)" else user}
        return [row["value"] for row in found if row["entity"] == wanted]

    browser = client(allow_changes=True)
    values = {"user": user, "values": "producer_byte_rate=1000000"}
    page = previewed(browser, "quota-set", **values).text
    assert values_now() == []
    assert "would be set" in page
    assert done(browser, "quota-set", **values).status_code == 200
    assert values_now() == [1000000.0]
    assert "/change/quota-unset?preview=1&amp;keys=producer_byte_rate" in browser.get("/access").text
    gone = previewed(browser, "quota-unset", user=user, keys="producer_byte_rate").text
    assert done(browser, "quota-unset", user=user, keys="producer_byte_rate").status_code == 400
    assert values_now() == [1000000.0]
    assert done(browser, "quota-unset", user, user=user, keys="producer_byte_rate").status_code == 200
    assert values_now() == []
    assert run_command(command_of(page)).code == 0
    assert values_now() == [1000000.0]
    assert run_command(command_of(gone)).code == 0
    assert values_now() == []


def test_without_an_authorizer_there_are_no_acls(client: MakeClient) -> None:
    values = {"principal": "User:a", "resource": "topic", "name": "orders", "operations": "read"}
    page = previewed(client(allow_changes=True), "acl-create", **values)
    assert page.status_code == 503
    assert "SECURITY_DISABLED" in page.text
    assert 'name="principal" value="User:a"' in page.text
