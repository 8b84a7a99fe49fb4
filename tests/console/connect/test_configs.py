"""Connectors made and configured: the plugin's errors at their fields, and secrets nowhere but in Connect."""

from __future__ import annotations

import html
import json
import logging
import re
import subprocess

import pytest
from starlette.testclient import TestClient

from kpybroker.console.options import parse_connect
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, rows_of
from tests.console.connect.conftest import CODE
from tests.console.connect.fake import SINK, FakeConnect

NEW = {"connect": "etl", "name": "new", "plugin": SINK, "config.table.url": "http://t", "config.topics": "orders"}
BILLING = {"connect": "etl", "name": "billing"}
INVALID = re.compile(r'<(?:input|select|textarea)[^>]* name="([^"]+)"[^>]*aria-invalid="true"')


def invalid(page: str) -> set[str]:
    """The names of the fields that are marked."""
    return set(INVALID.findall(page))


def typed_of(page: str) -> dict[str, str]:
    """What the form of a page has."""
    return {name: html.unescape(value) for name, value in re.findall(r'<input name="([^"]+)" value="([^"]*)"', page)}


def test_a_plugin_is_chosen_and_its_keys_are_fields(browser: TestClient) -> None:
    page = browser.get("/connect/plugins?connect=etl").text
    assert f"/change/connector-create?connect=etl&amp;plugin={SINK}" in page
    form = browser.get("/change/connector-create", params={"connect": "etl", "plugin": SINK}).text
    assert {"config.table.url", "config.topics", "config.batch.size"} <= set(typed_of(form))
    assert 'placeholder="100"' in form
    assert "Where the tables are." in form
    assert "config.token.cache.size" in typed_of(form)
    assert "table.code" not in form
    assert "table.access.key" not in form, "it is named like a secret"
    assert "config.connector.class" not in form


def test_each_error_of_the_plugin_is_at_its_field_and_what_was_typed_is_kept(
    browser: TestClient, fake: FakeConnect
) -> None:
    values = {**NEW, "config.table.url": "", "config.tasks.max": "many", "config.batch.size": "7"}
    page = previewed(browser, "connector-create", **values)
    assert page.status_code == 400
    assert invalid(page.text) == {"config.table.url", "config.tasks.max"}
    assert "Not a number of type INT" in page.text
    typed = typed_of(page.text)
    assert (typed["config.tasks.max"], typed["config.batch.size"], typed["name"]) == ("many", "7", "new")
    assert "new" not in fake.configs


def test_a_connector_is_made_with_a_secret_that_no_page_and_no_log_has(
    browser: TestClient, fake: FakeConnect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = previewed(browser, "connector-create", **NEW)
    assert page.status_code == 200
    assert ["table.code", "-", "typed at the end", "would be what is typed below"] in rows_of(page.text, "Preview")
    assert "new" not in fake.configs
    missing = done(browser, "connector-create", **NEW)
    assert missing.status_code == 400
    assert invalid(missing.text) == {"secret.table.code"}
    assert "new" not in fake.configs
    made = done(browser, "connector-create", **NEW, **{"secret.table.code": CODE})
    assert made.status_code == 200
    assert fake.configs["new"] == {
        "name": "new",
        "connector.class": SINK,
        "table.url": "http://t",
        "topics": "orders",
        "table.code": CODE,
    }
    for text in (page.text, missing.text, made.text, caplog.text):
        assert CODE not in text
    assert "Change key=connector-create" in caplog.text


def test_a_connector_is_made_while_the_cluster_is_away(client: MakeClient, fake: FakeConnect) -> None:
    browser = client(bootstrap="127.0.0.1:1", allow_changes=True, connects=(parse_connect(f"etl={fake.url}"),))
    secrets = {"secret.table.code": CODE, "secret.table.access.key": "acce55"}
    assert done(browser, "connector-create", **NEW, **secrets).status_code == 200
    assert fake.configs["new"]["table.access.key"] == "acce55"
    assert "billing" in browser.get("/connect").text


def test_a_secret_in_an_address_is_not_read(browser: TestClient) -> None:
    page = previewed(browser, "connector-create", **NEW, **{"secret.table.code": CODE, "secrets": '{"a": "b"}'}).text
    assert CODE not in page
    refused = previewed(browser, "connector-create", **NEW, more="db.password=pw")
    assert refused.status_code == 400
    assert invalid(refused.text) == {"more"}


def test_a_plugin_that_needs_its_secrets_to_check_the_rest_is_asked_at_the_end(
    browser: TestClient, fake: FakeConnect
) -> None:
    values = {**NEW, "config.table.url": "jdbc:x"}
    now = previewed(browser, "connector-create", **values)
    assert invalid(now.text) == {"config.table.url"}
    later = {**values, "check": "at the end, with the secrets"}
    assert (
        "said before the secrets are known: table.url: Cannot log in"
        in previewed(browser, "connector-create", **later).text
    )
    wrong = done(browser, "connector-create", **later, **{"secret.table.code": "wr0ng-one"})
    assert wrong.status_code == 400
    assert "wr0ng-one" not in wrong.text
    assert invalid(wrong.text) == {"config.table.url"}
    assert "new" not in fake.configs
    assert done(browser, "connector-create", **later, **{"secret.table.code": CODE}).status_code == 200
    assert fake.configs["new"]["table.code"] == CODE


def test_a_connector_is_made_from_json(browser: TestClient, fake: FakeConnect) -> None:
    given = {"name": "new", "config": {"connector.class": SINK, "table.url": "http://t", "tasks.max": 2}}
    values = {"connect": "etl", "name": "new", "more": json.dumps(given)}
    secrets = json.dumps({"table.code": CODE})
    assert done(browser, "connector-create", **values, secrets=secrets).status_code == 200
    assert (fake.configs["new"]["tasks.max"], fake.configs["new"]["table.code"]) == ("2", CODE)
    for more in ("{", "no equals", '{"config": {"a": [1]}}', '{"connector.class": "other"}'):
        page = previewed(browser, "connector-create", **{**NEW, "name": "another", "more": more})
        assert (page.status_code, invalid(page.text)) == (400, {"more"})
    assert invalid(previewed(browser, "connector-create", **NEW).text) == {"name"}
    assert invalid(previewed(browser, "connector-create", connect="etl", name="x").text) == {"plugin"}
    assert invalid(previewed(browser, "connector-create", connect="etl", name="x", plugin="None").text) == {"plugin"}


def test_a_configuration_is_edited_and_its_secrets_stay(browser: TestClient, fake: FakeConnect) -> None:
    fake.configs["billing"] |= {"value.converter": "org.example.Json", "errors.tolerance": "none"}
    form = browser.get("/change/connector-config", params=BILLING).text
    typed = {name: value for name, value in typed_of(form).items() if value}
    assert typed["config.batch.size"] == "50"
    assert "errors.tolerance=none\nvalue.converter=org.example.Json" in form
    values = {**typed, "config.batch.size": "60", "config.topics": "", "more": "errors.tolerance=none"}
    page = previewed(browser, "connector-config", **values)
    assert rows_of(page.text, "Preview") == [
        ["batch.size", "50", "60", "would be set"],
        ["topics", "orders", "-", "would be removed"],
        ["value.converter", "org.example.Json", "-", "would be removed"],
        ["table.access.key", "-", "-", "would be empty, unless it is typed below"],
        ["table.code", "(secret)", "(secret)", "would stay, unless it is typed below"],
    ]
    before = dict(fake.configs["billing"])
    after = {**before, "batch.size": "60"}
    del after["topics"], after["value.converter"]
    result = done(browser, "connector-config", **values)
    assert [row[-1] for row in rows_of(result.text, "Result")] == ["set", "removed", "removed", "not set", "stays"]
    assert fake.configs["billing"] == after
    fake.configs["billing"] = before
    subprocess.run(["sh", "-c", command_of(page.text)], check=True, capture_output=True)
    assert fake.configs["billing"] == after


def test_a_secret_alone_is_changed(browser: TestClient, fake: FakeConnect) -> None:
    form = browser.get("/change/connector-config", params=BILLING).text
    values = {name: value for name, value in typed_of(form).items() if value}
    result = done(browser, "connector-config", **values, **{"secret.table.code": "another-one"})
    assert rows_of(result.text, "Result")[-1] == ["table.code", "(secret)", "(secret)", "set"]
    assert fake.configs["billing"]["table.code"] == "another-one"
    assert "another-one" not in result.text


def test_a_configuration_that_has_changed_since_is_not_overwritten(browser: TestClient, fake: FakeConnect) -> None:
    form = browser.get("/change/connector-config", params=BILLING).text
    values = {name: value for name, value in typed_of(form).items() if value}
    fields = fields_of(previewed(browser, "connector-config", **{**values, "config.batch.size": "60"}).text)
    fake.configs["billing"]["tasks.max"] = "3"
    refused = browser.post("/change/connector-config", data=fields)
    assert refused.status_code == 409
    assert fake.configs["billing"]["tasks.max"] == "3"
    assert fake.configs["billing"]["batch.size"] == "50"
