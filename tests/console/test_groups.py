"""Groups: listed, described, and moved after a preview."""

from __future__ import annotations

import html
import uuid
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from starlette.testclient import TestClient

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, RunCommand, assigned, facts_of, rows_of, text_of, token_of


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
    assigned(broker, idle)
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
    client: MakeClient, broker: Broker, group: str, topic: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    before = broker.committed(group)
    page = previewed(browser, "group-move", group=group, to="start")
    assert {row[-1] for row in rows_of(page.text, "Preview")} >= {"would move"}
    assert broker.committed(group) == before
    result = done(browser, "group-move", group=group, to="start").text
    assert {row[-1] for row in rows_of(result, "Result")} >= {"moved"}
    assert set(broker.committed(group)[topic].values()) == {0}
    again = browser.post("/change/group-move", data=fields_of(page.text))
    assert again.status_code == 409
    assert "this has changed since the preview" in again.text
    assert run_command(command_of(previewed(browser, "group-move", group=group, to="end").text)).code == 0
    assert broker.committed(group) == before
    shifted = {"group": group, "to": "shift", "at": "-1", "topics": topic}
    assert run_command(command_of(previewed(browser, "group-move", **shifted).text)).code == 0
    assert sum(broker.committed(group)[topic].values()) == sum(before[topic].values()) - len(before[topic])


def test_a_reader_may_preview_but_not_move(client: MakeClient, broker: Broker, group: str) -> None:
    browser = client()
    page = previewed(browser, "group-move", group=group, to="start").text
    assert "read-only" in page
    assert "Do it" not in page
    refused = browser.post("/change/group-move", data={"token": token_of(page), "group": group, "to": "start"})
    assert refused.status_code == 403
    assert "--allow-changes" in refused.text


def test_a_group_with_members_is_not_moved(client: MakeClient, broker: Broker, topic: str) -> None:
    member = consumer_of(broker, f"busy-{topic}", topic)
    page = previewed(client(), "group-move", group=f"busy-{topic}", to="end")
    assert page.status_code == 400
    assert "has members" in page.text
    member.close()


@pytest.mark.parametrize(
    ("field", "query"),
    [
        ("to", {"to": "x"}),
        ("at", {"to": "offset", "at": "+5"}),
        ("at", {"to": "shift", "at": "5"}),
        ("at", {"to": "time", "at": "noon"}),
        ("topics", {"to": "start", "topics": "orders:x"}),
        ("topics", {"to": "start", "topics": "orders:99"}),
        ("group", {"group": "nothing", "to": "start"}),
    ],
)
def test_a_bad_target_marks_its_field_and_keeps_what_was_typed(
    client: MakeClient, group: str, field: str, query: dict[str, str]
) -> None:
    page = previewed(client(), "group-move", **{"group": group, **query})
    assert page.status_code == 400, page.text
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    for name in set(query) - {"to"}:
        assert f'name="{name}" value="{query[name]}"' in page.text


def test_a_group_that_is_not_there(client: MakeClient) -> None:
    browser = client()
    assert "there is no group" in get(browser, "/group", id="nothing").text
    assert browser.get("/group").status_code == 400


def test_committed_offsets_are_deleted_after_a_preview(
    client: MakeClient, broker: Broker, group: str, topic: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    form = html.unescape(browser.get("/change/group-forget", params={"group": group}).text)
    assert f">\n{topic}</textarea>" in form
    for bad in ("nothing", ""):
        page = previewed(browser, "group-forget", group=group, topics=bad)
        assert page.status_code == 400
        assert 'name="topics"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    ((partition, _),) = broker.committed(group)[topic].items()
    other = previewed(browser, "group-forget", group=group, topics=f"{topic}:{1 - partition}")
    assert "has no such committed offset" in html.unescape(other.text)
    values = {"group": group, "topics": f"{topic}:{partition}"}
    page = previewed(browser, "group-forget", **values)
    assert [row[-1] for row in rows_of(page.text, "Preview")] == ["would be deleted"]
    assert done(browser, "group-forget", **values).status_code == 400
    assert partition in broker.committed(group)[topic]
    assert rows_of(done(browser, "group-forget", group, **values).text, "Result")[0][-1] == "deleted"
    assert not broker.committed(group).get(topic), "the group stays until the next cleanup"
    again = browser.post("/change/group-forget", data={**fields_of(page.text), "typed_again": group})
    assert again.status_code in (400, 409)
    assert run_command(command_of(page.text)).code == 1  # there is none any more


def test_offsets_of_a_topic_that_members_read_stay(client: MakeClient, broker: Broker, topic: str) -> None:
    name = f"reads-{topic}"
    member = consumer_of(broker, name, topic)
    result = done(client(allow_changes=True), "group-forget", name, group=name, topics=topic).text
    assert rows_of(result, "Result")[0][-1].startswith("failed")
    assert "fix: " in result
    assert broker.committed(name)[topic]
    member.close()


def test_a_topic_names_its_consumers(client: MakeClient, broker: Broker, topic: str) -> None:
    member = consumer_of(broker, f"eats-{topic}", topic)
    rows = rows_of(client().get(f"/topics/{topic}/groups").text, "Consumers")
    assert [row[2:] for row in rows] == [[f"eats-{topic}", "0, 1"]]
    member.close()
    assert "no consumer of a group" in client().get(f"/topics/{topic}/groups").text
