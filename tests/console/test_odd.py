"""Odd records, members and offsets through every tool: nothing is hidden, and everything around is shown."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kpybroker.client.connect.settings import ENVIRONMENT
from kpybroker.client.connect.visible import CONTROL
from kpybroker.testing import Broker
from tests.console.conftest import START_S, MakeClient
from tests.support.programs.command_line import Result, invoke
from tests.support.requests import odd

SEED = 39
CONTROL_OF_A_PAGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """All odd records in one partition of two."""
    name = f"odd-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    odd.append(broker.bootstrap_servers, name, odd.records(SEED), 1)
    return name


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    with Broker(start_timeout=START_S) as started:
        yield started


@pytest.fixture
def run(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(ENVIRONMENT, broker.bootstrap_servers)

    def with_address(*arguments: str, stdin: bytes = b"", code: int = 0) -> Result:
        result = invoke(monkeypatch, *arguments, stdin=stdin)
        assert result.code == code, result
        assert not CONTROL.search(result.err.replace("\n", "")), result.err
        return result

    return with_address


# --- records


def test_json_lines_carry_every_record_to_another_topic(run: Any, broker: Broker, topic: str) -> None:
    run("topic", "create", f"{topic}-lines", "-p", "2")
    lines = run("topic", "consume", topic, "-e", "-f", "json").out
    assert len(lines.decode().splitlines()) == lines.count(b"\n") == len(odd.records(SEED))
    assert not CONTROL.search(lines.decode().replace("\n", ""))
    sent = run("topic", "produce", f"{topic}-lines", "-f", "json", "-o", "%p %o\\n", stdin=lines)
    assert sent.lines == [f"1 {offset}" for offset in range(len(odd.records(SEED)))]
    assert odd.stored(broker.bootstrap_servers, f"{topic}-lines", 1) == odd.records(SEED)


def test_replay_and_mirror_carry_every_record(run: Any, broker: Broker, other: Broker, topic: str) -> None:
    run("replay", topic, f"{topic}-again", "--create")
    assert odd.stored(broker.bootstrap_servers, f"{topic}-again", 1) == odd.records(SEED)
    run("mirror", topic, "--to", other.bootstrap_servers, "--create", "-e")
    assert odd.stored(other.bootstrap_servers, topic, 1) == odd.records(SEED)


@pytest.mark.parametrize(
    "form", ["value", "wide", "yaml", "%o %k %v %h\\n", "%k{hex} %v{base64} %d{iso} %h{%k{json}}\\n"]
)
def test_every_format_shows_every_record(run: Any, topic: str, form: str) -> None:
    out = run("topic", "consume", topic, "-e", "-f", form).out
    if form == "wide":
        assert not CONTROL.search(out.decode().replace("\n", ""))
        assert out.count(b"\n") == len(odd.records(SEED))
    for value in (odd.FIRST, odd.LAST):
        assert value in out or value.hex().encode() in out or b"Zmlyc3Qgb2YgYWxs" in out
    group = run("topic", "consume", topic, "-e", "-f", form, "-g", uuid.uuid4().hex).out
    assert len(group) == len(out)


def test_the_console_shows_every_record(client: MakeClient, topic: str) -> None:
    browser = client()
    count = len(odd.records(SEED))
    page = browser.get(f"/topics/{topic}/messages", params={"start": "oldest", "limit": "200"})
    assert page.status_code == 200
    assert not CONTROL_OF_A_PAGE.search(page.text)
    for text in ("first of all", "last of all", "\\xff\\xfe", "1969-12-31T23:59:55.000Z", str(2**62)):
        assert text in html.unescape(page.text), text
    for offset in range(count):
        shown = browser.get(f"/topics/{topic}/messages/1/{offset}")
        assert shown.status_code == 200, (offset, shown.text)
        assert not CONTROL_OF_A_PAGE.search(shown.text)
    lines = browser.get(f"/topics/{topic}/download.jsonl", params={"start": "oldest", "all": "1"})
    assert (lines.status_code, lines.content.count(b"\n")) == (200, count)
    table = browser.get(f"/topics/{topic}/download.csv", params={"start": "oldest", "all": "1"})
    assert len(list(csv.reader(io.StringIO(table.content.decode(), newline="")))) == count + 1


# --- groups


@pytest.mark.parametrize("what", odd.members("t"))
def test_a_group_is_shown_with_its_lag_whatever_its_member_says(
    run: Any, client: MakeClient, broker: Broker, topic: str, what: str
) -> None:
    group = f"<odd> \x1b[31m {uuid.uuid4().hex}"
    generation, member_id = odd.join(broker.bootstrap_servers, group, odd.members(topic)[what])
    offsets = {(topic, 1): (7, odd.METADATA[2])}
    odd.commit(broker.bootstrap_servers, group, offsets, generation, member_id)
    (described,) = json.loads(run("group", "describe", group, "--format", "json").out)
    assert described["state"] == "Stable"
    assert [one["member_id"] for one in described["members"]] == [member_id]
    behind = {(one["topic"], one["partition"]): one["lag"] for one in described["offsets"]}
    assert behind[topic, 1] == len(odd.records(SEED)) - 7
    table = run("group", "describe", group, "--members").text
    assert member_id in table
    assert not CONTROL.search(table.replace("\n", ""))
    page = client().get("/group", params={"id": group})
    assert page.status_code == 200
    assert member_id in page.text
    assert group not in page.text
    refused = run("group", "seek", group, "--to", "start", "-y", code=1)
    assert "has members" in refused.err


def test_an_unread_assignment_is_shown_as_bytes(run: Any, broker: Broker, topic: str) -> None:
    group = uuid.uuid4().hex
    odd.join(broker.bootstrap_servers, group, odd.Member("consumer", b"", b"\0\0" + b"\xff" * 500))
    (described,) = json.loads(run("group", "describe", group, "--format", "json").out)
    (member,) = described["members"]
    assert member["assignment"] == []
    assert member["assignment_bytes"] == f"00 00 {'ff ' * 61}ff and 438 bytes more"


@pytest.mark.parametrize("metadata", odd.METADATA)
def test_offsets_are_exported_and_imported_with_their_metadata(
    run: Any, broker: Broker, topic: str, metadata: str
) -> None:
    group = f"from {uuid.uuid4().hex}"
    odd.commit(broker.bootstrap_servers, group, {(topic, 1): (7, metadata)})
    exported = run("offsets", "export", group, "--format", "json").out
    assert json.loads(exported)[0]["metadata"] == (metadata or None)
    run("offsets", "import", "-", "--group", f"to {group}", "--execute", stdin=exported)
    again = run("offsets", "export", f"to {group}", "--format", "json").out
    assert json.loads(again)[0]["metadata"] == (metadata or None)


# --- the whole cluster


def test_doctor_and_metrics_work_around_them(run: Any, broker: Broker, topic: str) -> None:
    odd.commit(broker.bootstrap_servers, 'odd "group"\n\\ \x1b[31m', {(topic, 1): (7, "")})
    found = run("doctor", broker.bootstrap_servers, "--format", "json", code=0).json
    assert all(one["status"] != "failed" for one in found)
    url = broker.channel.call("status")["brokers"][0]["metrics"]
    with urllib.request.urlopen(url) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    assert any(sample.labels.get("topic") == topic for family in families for sample in family.samples)
