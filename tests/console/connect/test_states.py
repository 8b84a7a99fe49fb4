"""Connectors and tasks restarted, paused, resumed, stopped, deleted, begun again; each also by its command."""

from __future__ import annotations

import logging
import subprocess

import pytest
from starlette.testclient import TestClient

from kpybroker.console.options import parse_connect
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, rows_of, token_of
from tests.console.connect.fake import FakeConnect

BILLING = {"connect": "etl", "name": "billing"}
SHIPPING = {"connect": "etl", "name": "shipping"}


def run(command: str) -> None:
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("key", "values", "after"),
    [
        ("connector-restart", SHIPPING, ["RUNNING", "RUNNING", "RUNNING"]),
        ("connector-task-restart", {**SHIPPING, "task": "1"}, ["RUNNING", "RUNNING", "RUNNING"]),
        ("connector-pause", SHIPPING, ["PAUSED", "PAUSED", "PAUSED"]),
        ("connector-stop", SHIPPING, ["STOPPED"]),
    ],
)
def test_a_state_is_changed_as_its_preview_says_and_by_its_command(
    browser: TestClient, fake: FakeConnect, key: str, values: dict[str, str], after: list[str]
) -> None:
    before = list(fake.states["shipping"])
    page = previewed(browser, key, **values)
    assert page.status_code == 200
    assert fake.states["shipping"] == before
    assert "is being" in rows_of(done(browser, key, **values).text, "Result")[-1][-1]
    assert fake.states["shipping"] == after
    fake.states["shipping"] = before
    run(command_of(page.text))
    assert fake.states["shipping"] == after


def test_what_has_not_failed_stays_as_it_is(browser: TestClient) -> None:
    rows = rows_of(previewed(browser, "connector-restart", **SHIPPING).text, "Preview")
    assert [row[-1] for row in rows] == ["stays", "stays", "would be restarted"]
    rows = rows_of(previewed(browser, "connector-restart", **BILLING, what="everything").text, "Preview")
    assert [row[-1] for row in rows] == ["would be restarted", "would be restarted"]
    assert "There is nothing to change" in previewed(browser, "connector-resume", **BILLING).text


def test_a_connector_that_has_changed_since_its_preview_is_left_alone(browser: TestClient, fake: FakeConnect) -> None:
    form = fields_of(previewed(browser, "connector-restart", **SHIPPING).text)
    fake.states["shipping"] = ["RUNNING", "FAILED", "FAILED"]
    assert browser.post("/change/connector-restart", data=form).status_code == 409
    assert fake.states["shipping"] == ["RUNNING", "FAILED", "FAILED"]


def test_a_connector_is_deleted_only_with_its_name_typed_again(browser: TestClient, fake: FakeConnect) -> None:
    wrong = done(browser, "connector-delete", "billin", **BILLING)
    assert wrong.status_code == 400
    assert 'aria-invalid="true"' in wrong.text
    assert "billing" in fake.configs
    assert done(browser, "connector-delete", "billing", **BILLING).status_code == 200
    assert "billing" not in fake.configs
    assert previewed(browser, "connector-delete", **BILLING).status_code == 400


def test_offsets_are_reset_of_one_that_is_stopped(browser: TestClient, fake: FakeConnect) -> None:
    refused = previewed(browser, "connector-offsets-reset", **BILLING)
    assert refused.status_code == 400
    assert "stop it first" in refused.text
    fake.states["billing"] = ["STOPPED"]
    assert rows_of(done(browser, "connector-offsets-reset", "billing", **BILLING).text, "Result")[0][-1] == "forgotten"
    assert fake.offsets["billing"] == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"connect": "other"}, "connect"),
        ({"name": ""}, "name"),
        ({"name": "none"}, "name"),
        ({"task": "7"}, "task"),
        ({"task": "two"}, "task"),
    ],
)
def test_bad_input_marks_its_field(browser: TestClient, values: dict[str, str], field: str) -> None:
    page = previewed(browser, "connector-task-restart", **{**SHIPPING, "task": "1", **values})
    assert page.status_code == 400
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]


def test_a_read_only_console_changes_nothing(client: MakeClient, fake: FakeConnect) -> None:
    browser = client(connects=(parse_connect(f"etl={fake.url}"),))
    page = previewed(browser, "connector-pause", **BILLING).text
    assert "This console is read-only." in page
    token = token_of(browser.get("/topics").text)
    refused = browser.post("/change/connector-pause", data={**BILLING, "token": token, "plan": "[]", "signature": "x"})
    assert refused.status_code == 403
    assert fake.states["billing"] == ["RUNNING", "RUNNING"]


def test_a_change_is_logged_with_who_what_and_from_where(
    client: MakeClient, fake: FakeConnect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kpybroker.console.changes")
    browser = client(allow_changes=True, user_header="x-user", connects=(parse_connect(f"etl={fake.url}"),))
    browser.headers["x-user"] = "ada"
    done(browser, "connector-pause", **BILLING)
    line = next(one for one in caplog.messages if one.startswith("Change key=connector-pause"))
    assert "user=ada from=127.0.0.1" in line
    assert f"curl -f -X PUT {fake.url}/connectors/billing/pause" in line
    assert line.endswith("outcome=done")
