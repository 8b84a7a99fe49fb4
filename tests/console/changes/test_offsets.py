"""A group's offsets, edited partition by partition."""

from __future__ import annotations

import html
import uuid

import pytest
from confluent_kafka import TopicPartition

from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, fields_of, previewed
from tests.console.conftest import MakeClient, RunCommand, assigned, rows_of


@pytest.fixture
def group(broker: Broker) -> str:
    """Without members, at offset 2 of both partitions of the topic of its name."""
    name = f"edit-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    for number in (0, 1):
        producer = broker.producer()
        for _ in range(5):
            producer.produce(name, b"x", partition=number)
        producer.flush()
    consumer = broker.consumer(name)
    consumer.commit(offsets=[TopicPartition(name, number, 2) for number in (0, 1)], asynchronous=False)
    consumer.close()
    return name


def test_only_the_partitions_that_are_named_are_committed(
    client: MakeClient, broker: Broker, group: str, monkeypatch: pytest.MonkeyPatch, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    form = html.unescape(browser.get("/change/group-offsets", params={"group": group}).text)
    assert f"{group} 0 2\n{group} 1 2" in form
    values = {"group": group, "offsets": f"{group} 0 4\n{group} 1 2"}
    page = previewed(browser, "group-offsets", **values).text
    assert [row[1:] for row in rows_of(page, "Preview")] == [
        ["0", "2", "4", "1", "would move"],
        ["1", "2", "2", "3", "stays"],
    ]
    assert broker.committed(group) == {group: {0: 2, 1: 2}}
    result = done(browser, "group-offsets", **values)
    assert [row[-1] for row in rows_of(result.text, "Result")] == ["moved", "stays"]
    assert broker.committed(group) == {group: {0: 4, 1: 2}}
    stale = browser.post("/change/group-offsets", data=fields_of(page))
    assert stale.status_code == 409
    back = command_of(previewed(browser, "group-offsets", group=group, offsets=f"{group} 0 1").text)
    printed, _, command = back.partition(" | ")
    assert printed == f"printf %s '{group} 0 1\n'"
    monkeypatch.setattr("kpybroker.client.actions.seek.read_offsets", lambda path: {(group, 0): 1})
    assert "--to-file -" in command
    assert run_command(command).code == 0
    assert broker.committed(group) == {group: {0: 1, 1: 2}}


@pytest.mark.parametrize("line", ["", "{0} 0", "{0} 0 9", "{0} 9 0", "{0} 0 x"])
def test_lines_that_cannot_be_used_mark_the_field_and_stay(client: MakeClient, group: str, line: str) -> None:
    typed = line.format(group)
    page = previewed(client(allow_changes=True), "group-offsets", group=group, offsets=typed)
    assert page.status_code == 400
    assert 'name="offsets"' in page.text.split('aria-invalid="true"')[0].rsplit("<", 1)[1]
    assert typed in page.text


def test_a_group_with_members_is_refused(client: MakeClient, broker: Broker, group: str) -> None:
    member = broker.consumer(group, group)
    assigned(broker, member)
    page = previewed(client(allow_changes=True), "group-offsets", group=group, offsets=f"{group} 0 1")
    assert page.status_code == 400
    assert "has members" in page.text
    member.close()


def test_a_group_is_deleted_with_its_name_typed_again(
    client: MakeClient, broker: Broker, group: str, run_command: RunCommand
) -> None:
    browser = client(allow_changes=True)
    page = previewed(browser, "group-delete", group=group).text
    assert rows_of(page, "Preview")[0][1:] == [group, "2", "would be deleted"]
    assert done(browser, "group-delete", group=group).status_code == 400
    assert rows_of(done(browser, "group-delete", group, group=group).text, "Result")[0][-1] == "deleted"
    assert broker.group(group) is None
    gone = previewed(browser, "group-delete", group=group)
    assert gone.status_code == 400
    assert "there is no group" in gone.text
    assert run_command(command_of(page)).code == 1
