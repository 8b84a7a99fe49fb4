"""Topics: created, with more partitions, without old records, deleted; each with its preview and its command."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest
from confluent_kafka.admin import ConfigResource

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, RunCommand, rows_of, text_of, token_of


@pytest.fixture
def name() -> str:
    return f"change-{uuid.uuid4().hex[:8]}"


def topics_of(broker: Broker) -> Any:
    return broker.admin().list_topics(timeout=30).topics


def setting(broker: Broker, topic: str, key: str) -> str | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = broker.admin()
    value: str | None = admin.describe_configs([resource])[resource].result()[key].value
    return value


def test_a_topic_is_created_after_a_preview_that_creates_nothing(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    values = {
        "topic": name,
        "partitions": "3",
        "replicas": "1",
        "configs": "retention.ms=3600000\ncleanup.policy=delete",
    }
    page = previewed(browser, "topic-create", **values).text
    assert rows_of(page, "Preview")[0][:3] == [name, "3", "1"]
    assert name not in topics_of(broker)
    result = done(browser, "topic-create", **values)
    assert result.status_code == 200
    assert rows_of(result.text, "Result")[0][-1] == "created"
    assert f'href="/topics/{name}"' in result.text
    assert len(topics_of(broker)[name].partitions) == 3
    assert setting(broker, name, "retention.ms") == "3600000"
    broker.delete_topic(name)
    assert run_command(command_of(page)).code == 0
    assert len(topics_of(broker)[name].partitions) == 3
    assert setting(broker, name, "retention.ms") == "3600000"
    broker.delete_topic(name)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("topic", {"topic": ""}),
        ("topic", {"topic": "no/slash"}),
        ("topic", {"topic": "orders"}),
        ("partitions", {"partitions": "many"}),
        ("partitions", {"partitions": "0"}),
        ("replicas", {"replicas": "9"}),
        ("configs", {"configs": "retention.ms"}),
        ("configs", {"configs": "retention.ms=soon"}),
        ("configs", {"configs": "no.such.key=1"}),
    ],
)
def test_bad_input_marks_its_field_and_keeps_what_was_typed(
    client: MakeClient, name: str, field: str, values: dict[str, str]
) -> None:
    typed = {"topic": name, "partitions": "2", "replicas": "1", "configs": "", **values}
    page = previewed(client(allow_changes=True), "topic-create", **typed)
    assert page.status_code == 400
    marked = page.text.split('aria-invalid="true"')
    assert len(marked) == 2
    assert marked[0].rindex("name=") == marked[0].rindex(f'name="{field}"')
    assert f'name="topic" value="{typed["topic"]}"' in page.text
    assert f'name="partitions" value="{typed["partitions"]}"' in page.text
    assert typed["configs"] in page.text
    assert "Do it" not in page.text


def test_the_form_has_the_keys_with_types_and_meanings(client: MakeClient) -> None:
    page = client(allow_changes=True).get("/change/topic-create").text
    rows = {row[0]: row[1:] for row in rows_of(page, "Keys")}
    assert rows["retention.ms"][1] == "long"
    assert len(rows["retention.ms"][2]) > 20


def test_partitions_are_added(client: MakeClient, broker: Broker, name: str, run_command: RunCommand) -> None:
    broker.create_topic(name, 2)
    browser = client(allow_changes=True)
    fewer = previewed(browser, "topic-partitions", topic=name, partitions="2")
    assert fewer.status_code == 400
    assert "has 2 partitions" in fewer.text
    assert rows_of(done(browser, "topic-partitions", topic=name, partitions="3").text, "Result")[0] == [
        name,
        "2",
        "3",
        "added",
    ]
    assert len(topics_of(broker)[name].partitions) == 3
    page = previewed(browser, "topic-partitions", topic=name, partitions="4").text
    assert run_command(command_of(page)).code == 0
    assert len(topics_of(broker)[name].partitions) == 4
    stale = browser.post("/change/topic-partitions", data=fields_of(page))
    assert stale.status_code == 400
    assert "has 4 partitions" in stale.text


def test_records_are_deleted_up_to_an_offset_only_with_the_name_typed_again(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand
) -> None:
    broker.create_topic(name, 2)
    broker.produce(name, [("k", str(number)) for number in range(10)])
    browser = client(allow_changes=True)
    page = previewed(browser, "topic-trim", topic=name, to="4").text
    assert sum(int(row[3]) for row in rows_of(page, "Preview")) == 4
    for wrong in ("", name.upper()):
        refused = done(browser, "topic-trim", wrong, topic=name, to="4")
        assert refused.status_code == 400
        assert "nothing was done" in refused.text
    assert len(broker.records(name)) == 10
    assert "trimmed" in text_of(done(browser, "topic-trim", name, topic=name, to="4").text)
    assert len(broker.records(name)) == 6
    stale = browser.post("/change/topic-trim", data={**fields_of(page), "typed_again": name})
    assert stale.status_code == 409
    assert "this has changed since the preview" in stale.text
    page = previewed(browser, "topic-trim", topic=name, to="end").text
    assert run_command(command_of(page)).code == 0
    assert broker.records(name) == []
    assert "There is nothing to change." in previewed(browser, "topic-trim", topic=name, to="end").text


@pytest.mark.parametrize(("field", "values"), [("to", {"to": "noon"}), ("partitions", {"partitions": "7"})])
def test_a_place_that_is_none_is_marked(client: MakeClient, field: str, values: dict[str, str]) -> None:
    page = previewed(client(allow_changes=True), "topic-trim", **{"topic": "orders", "to": "0", **values})
    assert page.status_code == 400
    assert f'name="{field}"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]


def test_a_topic_is_deleted_only_with_its_name_typed_again(
    client: MakeClient, broker: Broker, name: str, run_command: RunCommand
) -> None:
    broker.create_topic(name, 1)
    browser = client(allow_changes=True)
    page = previewed(browser, "topic-delete", topic=name).text
    assert done(browser, "topic-delete", topic=name).status_code == 400
    assert name in topics_of(broker)
    broker.delete_topic(name)
    broker.create_topic(name, 1)
    other = browser.post("/change/topic-delete", data={**fields_of(page), "typed_again": name})
    assert other.status_code == 409, "a topic of this name that is another one is not deleted"
    assert "deleted" in text_of(done(browser, "topic-delete", name, topic=name).text)
    assert name not in topics_of(broker)
    broker.create_topic(name, 1)
    assert run_command(command_of(page)).code == 0
    assert name not in topics_of(broker)


def test_a_reader_sees_the_preview_and_can_do_nothing(client: MakeClient, broker: Broker) -> None:
    browser = client()
    page = previewed(browser, "topic-delete", topic="orders")
    assert "This console is read-only" in page.text
    assert "Do it" not in page.text
    token = token_of(page.text)
    assert browser.post("/change/topic-delete", data={"token": token, "topic": "orders"}).status_code == 403
    assert "orders" in topics_of(broker)
    assert "Delete the topic" not in browser.get("/topics/orders").text


def test_nothing_is_done_without_a_token_or_with_a_plan_that_was_changed(client: MakeClient, broker: Broker) -> None:
    browser = client(allow_changes=True)
    fields = {**fields_of(previewed(browser, "topic-delete", topic="orders").text), "typed_again": "orders"}
    assert browser.post("/change/topic-delete", data={**fields, "token": "x"}).status_code == 403
    for field, value in (("plan", "[]"), ("topic", "others"), ("signature", "0")):
        refused = browser.post("/change/topic-delete", data={**fields, field: value})
        assert refused.status_code == 400
        assert "this form has no plan" in refused.text
    other = client(allow_changes=True)
    token = token_of(other.get("/change/topic-delete").text)
    assert other.post("/change/topic-delete", data={**fields, "token": token}).status_code == 400
    assert "orders" in topics_of(broker)


def test_each_change_is_a_line_of_the_log(
    client: MakeClient, broker: Broker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = client(peer="127.0.0.1", allow_changes=True, user_header="X-User")
    browser.headers["X-User"] = "ada\x1b[31m"
    with caplog.at_level(logging.INFO, "kpybroker.console.changes"):
        done(browser, "topic-create", topic=name)
        done(browser, "topic-delete", topic=name)
    made, refused = [line for line in caplog.messages if line.startswith("Change key=")]
    assert made.startswith("Change key=topic-create user=ada")
    assert "\x1b" not in made
    assert "from=127.0.0.1" in made
    assert f"kpybroker topic create -b {broker.bootstrap_servers} {name}" in made
    assert made.endswith("outcome=done")
    assert "outcome=refused cause='the name that was typed again is not" in refused
    broker.delete_topic(name)


def test_a_change_that_is_none_and_a_topic_that_is_none(client: MakeClient) -> None:
    browser = client(allow_changes=True)
    assert browser.get("/change/nothing").status_code == 404
    page = previewed(browser, "topic-delete", topic="not-there")
    assert page.status_code == 400
    assert "there is no topic not-there" in page.text
