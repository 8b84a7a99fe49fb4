"""Settings of topics, brokers and groups: set, and returned to their defaults."""

from __future__ import annotations

import uuid

import pytest

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, previewed
from tests.console.conftest import MakeClient, RunCommand, rows_of
from tests.support.programs.command_line import invoke


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"config-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    return name


@pytest.mark.parametrize(
    "values",
    [
        ("topic", "orders", "retention.ms", "3600000"),
        ("broker", "0", "log.cleaner.threads", "2"),
        ("broker", "default", "message.max.bytes", "2000000"),
        ("group", "readers", "consumer.session.timeout.ms", "50000"),
    ],
)
def test_a_key_is_set_and_returned(
    client: MakeClient,
    broker: Broker,
    values: tuple[str, str, str, str],
    run_command: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, name, key, value = values

    def now() -> list[str]:
        arguments = ("config", "describe", kind, name, "-b", broker.bootstrap_servers, "--format", "json")
        return [one["value"] for one in invoke(monkeypatch, *arguments).json[0]["configs"] if one["key"] == key]

    browser = client(allow_changes=True)
    typed = {"kind": kind, "name": name, "key": key, "do": "set", "value": value}
    page = previewed(browser, "config", **typed).text
    assert "would be set" in page
    assert now() == []
    assert rows_of(done(browser, "config", **typed).text, "Result")[0][-1] == "set"
    assert now() == [value]
    reset = {**typed, "do": "return to the default", "value": ""}
    assert "would be returned" in (away := previewed(browser, "config", **reset).text)
    assert run_command(command_of(away)).code == 0
    assert now() == []
    assert run_command(command_of(page)).code == 0
    assert now() == [value]
    assert "returned to the default" in done(browser, "config", **reset).text
    assert now() == []


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", {"name": ""}),
        ("kind", {"kind": "cluster"}),
        ("key", {"key": "no.such.key"}),
        ("value", {"value": "soon"}),
        ("value", {"value": "-7"}),
        ("value", {"key": "unclean.leader.election.enable", "value": "yes"}),
        ("key", {"kind": "broker", "name": "0", "key": "log.dirs", "value": "/tmp"}),
        ("key", {"kind": "broker", "name": "0", "key": "ssl.truststore.password", "value": "x"}),
        ("key", {"kind": "broker", "name": "0", "key": "listener.name.a.ssl.key.password", "value": "x"}),
    ],
)
def test_bad_input_marks_its_field(client: MakeClient, topic: str, field: str, values: dict[str, str]) -> None:
    typed = {"kind": "topic", "name": topic, "key": "retention.ms", "do": "set", "value": "1000", **values}
    page = previewed(client(allow_changes=True), "config", **typed)
    assert page.status_code == 400
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    assert f'name="value" value="{typed["value"]}"' in page.text


def test_the_pages_of_configuration_lead_to_the_form(client: MakeClient, topic: str) -> None:
    browser = client(allow_changes=True)
    page = browser.get(f"/topics/{topic}/configuration").text
    assert f"/change/config?kind=topic&amp;name={topic}&amp;key=retention.ms" in page
    assert "/change/config?kind=broker&amp;name=0&amp;key=log.cleaner.threads" in browser.get("/brokers/0").text
    assert "/change/config?kind=broker&amp;name=0&amp;key=log.dirs" not in browser.get("/brokers/0").text
    assert "/change/config" not in client().get(f"/topics/{topic}/configuration").text
    form = browser.get(f"/change/config?kind=topic&name={topic}").text
    assert {row[0]: row[2] for row in rows_of(form, "Keys")}["min.insync.replicas"] == "int"
