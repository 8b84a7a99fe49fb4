"""Groups: listed, described, and moved after a preview."""

from __future__ import annotations

import html
import re
import uuid
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from starlette.testclient import TestClient

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.pages.groups import read_plan
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient, facts_of, text_of, token_of

PLAN = re.compile(r'name="plan" value="([^"]*)"')


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"g-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    broker.produce(name, [("k", str(number)) for number in range(20)])
    return name


def consumer_of(broker: Broker, group: str, topic: str) -> Any:
    made = broker.consumer(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
    made.subscribe([topic])
    read = 0
    while read < 20:
        read += len(made.consume(20 - read, timeout=1))
    made.commit(asynchronous=False)
    return made


@pytest.fixture
def group(broker: Broker, topic: str) -> str:
    """Without members, at the end of the topic; its name needs escaping everywhere."""
    name = f"<g> / {topic}?&"
    consumer_of(broker, name, topic).close()
    return name


def get(browser: TestClient, path: str, **query: str) -> Any:
    return browser.get(path, params=query)


def test_groups_are_listed_by_name_and_state_with_their_lag(
    client: MakeClient, group: str, topic: str, broker: Broker
) -> None:
    broker.produce(topic, ["more"])
    browser = client()
    page = get(browser, "/groups", q=topic, lag="1").text
    assert html.escape(group) in page
    assert "Empty" in page
    assert '<td class="number">1</td>' in page
    assert "0 of " in get(browser, "/groups", q=topic, state="Stable").text


def test_only_groups_that_lag(client: MakeClient, group: str, topic: str, broker: Broker) -> None:
    browser = client()
    assert "no group matches" in get(browser, "/groups", q=topic, lag="only").text
    broker.produce(topic, ["more"])
    page = get(browser, "/groups", q=topic, lag="only").text
    assert html.escape(group) in page
    assert facts_of(page)["Asked for their lag"] == "1"


def test_a_group_shows_members_and_offsets(client: MakeClient, broker: Broker, topic: str) -> None:
    member = consumer_of(broker, f"live-{topic}", topic)
    page = get(client(), "/group", id=f"live-{topic}").text
    assert "Stable" in page
    assert f"{topic}-0, {topic}-1" in page
    assert "Read by" in page
    member.close()


def test_partitions_that_were_never_read_are_named_next_to_the_lag(client: MakeClient, broker: Broker) -> None:
    topic = f"half-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 3)
    broker.produce(topic, [str(number) for number in range(9)])
    committer = broker.consumer(topic)
    committer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    committer.close()
    browser, wanted = client(), "1, and 2 partitions never read"
    assert facts_of(get(browser, "/group", id=topic).text)["Lag"] == wanted
    assert wanted in get(browser, "/groups", q=topic, lag="1").text
    assert wanted in text_of(browser.get(f"/topics/{topic}/groups").text)
    assert "never read" not in get(browser, "/groups", q=topic).text


def test_a_group_that_has_read_nothing_of_what_it_has_is_among_those_that_lag(
    client: MakeClient, topic: str, broker: Broker
) -> None:
    idle = broker.consumer(f"idle-{topic}", topic, enable_auto_commit=False)
    idle.poll(0)
    broker.wait_assigned(f"idle-{topic}", topic)
    assert "0, and 1 partition never read" in get(client(), "/groups", q=topic, lag="only").text
    idle.close()


def test_lag_over_time_is_remembered(client: MakeClient, group: str) -> None:
    browser = client()
    assert get(browser, "/group", id=group).status_code == 200
    times, lags = get(browser, "/group/lag.json", id=group).json()
    assert len(times) == len(lags) >= 1
    assert lags[0] == 0


def test_a_topic_names_its_readers(client: MakeClient, group: str, topic: str) -> None:
    page = client().get(f"/topics/{topic}/groups").text
    assert html.escape(group) in page


def test_a_preview_changes_nothing_and_its_form_moves_the_group(
    client: MakeClient, broker: Broker, group: str, topic: str
) -> None:
    browser = client(allow_changes=True)
    before = broker.committed(group)
    page = get(browser, "/group/move", id=group, to="start").text
    assert "would move" in page
    assert broker.committed(group) == before
    form = {"token": token_of(page), "plan": html.unescape(PLAN.findall(page)[0])}
    done = browser.post("/group/move", params={"id": group}, data=form)
    assert "moved" in done.text
    assert set(broker.committed(group)[topic].values()) == {0}
    again = browser.post("/group/move", params={"id": group}, data=form)
    assert "was committed since the preview" in again.text


def test_a_reader_may_preview_but_not_move(client: MakeClient, broker: Broker, group: str) -> None:
    browser = client()
    page = get(browser, "/group/move", id=group, to="start").text
    assert "read-only" in page
    assert "plan" not in page
    token = browser.app.state.console.sessions.token(browser.cookies["kpybroker_console"])  # type: ignore[attr-defined]
    plan = '[["t", 0, 1, 0]]'
    refused = browser.post("/group/move", params={"id": group}, data={"token": token, "plan": plan})
    assert refused.status_code == 403
    assert "--allow-changes" in refused.text


def test_a_group_with_members_is_not_moved(client: MakeClient, broker: Broker, topic: str) -> None:
    member = consumer_of(broker, f"busy-{topic}", topic)
    page = get(client(), "/group/move", id=f"busy-{topic}", to="end")
    assert "has members" in page.text
    member.close()


@pytest.mark.parametrize(
    "query", [{}, {"to": "x"}, {"to": "offset", "at": "+5"}, {"to": "shift", "at": "5"}, {"to": "time", "at": "noon"}]
)
def test_a_bad_target_is_an_error_of_the_reader(client: MakeClient, group: str, query: dict[str, str]) -> None:
    assert get(client(), "/group/move", id=group, **query).status_code == 400


def test_a_group_that_is_not_there(client: MakeClient) -> None:
    browser = client()
    assert "there is no group" in get(browser, "/group", id="nothing").text
    assert browser.get("/group").status_code == 400


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "[1]", "[[1, 2, 3, 4]]", '[["t", 0, 0, -1]]', '[["t", true, 0, 1]]', '[["t", 0, 0]]', "[" * 9999],
)
def test_a_plan_that_is_none(text: str) -> None:
    with pytest.raises(CommandError):
        read_plan(text)


def test_committed_offsets_are_deleted_after_a_preview(
    client: MakeClient, broker: Broker, group: str, topic: str
) -> None:
    browser = client(allow_changes=True)
    assert "no such committed offset" in get(browser, "/group/forget", id=group, topics="nothing").text
    ((partition, _),) = broker.committed(group)[topic].items()
    assert "no such committed" in get(browser, "/group/forget", id=group, topics=f"{topic}:{1 - partition}").text
    page = get(browser, "/group/forget", id=group, topics=f"{topic}:{partition}").text
    assert page.count("would be deleted") == 1
    assert partition in broker.committed(group)[topic]
    form = {"token": token_of(page), "plan": html.unescape(PLAN.findall(page)[0])}
    assert "<td>deleted</td>" in browser.post("/group/forget", params={"id": group}, data=form).text
    assert not broker.committed(group).get(topic), "the group stays until the next cleanup"
    again = browser.post("/group/forget", params={"id": group}, data=form)
    assert "was committed since the preview" in again.text
    reader = client()
    assert "read-only" in get(reader, "/group/forget", id=group).text
    assert reader.post("/group/forget", params={"id": group}, data=form).status_code == 403


def test_offsets_of_a_topic_that_members_read_stay(client: MakeClient, broker: Broker, topic: str) -> None:
    member = consumer_of(broker, f"reads-{topic}", topic)
    browser = client(allow_changes=True)
    page = get(browser, "/group/forget", id=f"reads-{topic}").text
    form = {"token": token_of(page), "plan": html.unescape(PLAN.findall(page)[0])}
    done = browser.post("/group/forget", params={"id": f"reads-{topic}"}, data=form).text
    assert "<td>failed</td>" in done
    assert "fix: " in done
    assert broker.committed(f"reads-{topic}")[topic]
    member.close()
