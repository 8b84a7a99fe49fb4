"""The pages of share groups (KIP-932): start offsets, members, and a move; nothing is committed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType

from kpybroker.console.queries.outside.share_groups import ROWS_MAX, UNKNOWN, held
from kpybroker.console.web.live import Notes
from kpybroker.testing import Broker
from tests.console.changes.conftest import command_of, done, previewed
from tests.console.conftest import START_S, MakeClient, RunCommand, facts_of, rows_of
from tests.console.test_development import control_of
from tests.console.test_groups import get

RECORDS = 3


@pytest.fixture
def group(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A share group of the test's name, on a topic of that name of which nothing was taken yet."""
    name = str(request.node.originalname)
    broker.create_topic(name)
    broker.produce(name, ["job"] * RECORDS)
    return name


def worked(broker: Broker, group: str) -> None:
    """All records are accepted, and the member has gone."""
    with broker.share_consumer(group, group) as worker:
        seen = 0
        while seen < RECORDS:
            seen += len([*worker.poll(0.1)])
        worker.commit_sync(START_S)


def test_a_member_and_what_waits_are_shown(client: MakeClient, broker: Broker, group: str) -> None:
    browser = client()
    member = broker.share_consumer(group, group, share_acknowledgement_mode="explicit")
    try:
        broker.wait_for(lambda: [*member.poll(0.1)], START_S, "records")
        page = get(browser, "/group", id=group).text
        assert (facts_of(page)["State"], facts_of(page)["Type"]) == ("Stable", "share")
        assert facts_of(page)["Lag"] == "-, of 1 partition not known yet", "nothing was acknowledged"
        assert f"<td>{group}</td><td>{group}-0</td>" in page
        assert rows_of(get(browser, f"/topics/{group}/groups").text, "Consumers")[0][2:] == [group, "0"]
        assert "has members" in previewed(browser, "group-move", group=group, to="start").text
    finally:
        member.close()


def test_it_is_listed_by_its_type_and_is_no_reader_of_a_topic(client: MakeClient, broker: Broker, group: str) -> None:
    worked(broker, group)
    browser = client()
    listed = get(browser, "/groups", q=group, type="share", lag="1").text
    assert "<td>share</td>" in listed
    assert facts_of(listed)["Groups"].split()[0] == "1"
    assert f"/group?id={group}" not in get(browser, f"/topics/{group}/groups").text
    assert get(browser, "/group/lag.json", id=group).json()[1] == [0]


def test_its_start_offsets_are_moved_by_partition_forgotten_and_the_group_deleted(
    client: MakeClient, broker: Broker, group: str, run_command: RunCommand
) -> None:
    worked(broker, group)
    browser = client(allow_changes=True)

    def lag() -> str:
        return facts_of(get(browser, "/group", id=group).text)["Lag"]

    page = previewed(browser, "group-move", group=group, to="start").text
    assert rows_of(page, "Preview")[0][-1] == "would move"
    assert lag() == "0"
    assert rows_of(done(browser, "group-move", group=group, to="start").text, "Result")[0][-1] == "moved"
    broker.wait_for(lambda: lag() == str(RECORDS), START_S, "the lag")
    values = {"group": group, "offsets": f"{group} 0 {RECORDS - 1}"}
    assert rows_of(done(browser, "group-offsets", **values).text, "Result")[0][-1] == "moved"
    broker.wait_for(lambda: lag() == "1", START_S, "the lag")
    assert rows_of(previewed(browser, "group-offsets", **values).text, "Preview")[0][-1] == "would move"
    assert run_command(command_of(page)).code == 0
    broker.wait_for(lambda: lag() == str(RECORDS), START_S, "the lag")
    whole = previewed(browser, "group-forget", group=group, topics=f"{group}:0")
    assert whole.status_code == 400
    assert "forgets topics, not partitions" in whole.text
    form = previewed(browser, "group-forget", group=group, topics=group).text
    assert rows_of(form, "Preview")[0] == [group, "-", "-", "would be deleted"]
    assert rows_of(done(browser, "group-forget", group, group=group, topics=group).text, "Result")[0][-1] == "deleted"
    assert run_command(command_of(form)).code == 1  # there is none any more
    assert rows_of(done(browser, "group-delete", group, group=group).text, "Result")[0][-1] == "deleted"
    assert get(browser, "/group", id=group).status_code == 404


def test_a_development_broker_shows_what_is_in_flight_and_why_records_were_archived(
    client: MakeClient, broker: Broker, group: str
) -> None:
    browser = client(control=control_of(broker))
    with broker.share_consumer(group, group, share_acknowledgement_mode="explicit") as member:
        records = broker.wait_for(lambda: [*member.poll(0.1)], START_S, "records")
        assert len(records) == RECORDS
        page = get(browser, "/group", id=group).text
        (row,) = rows_of(page, "In flight")
        topic, partition, offsets, holder, delivery, until = row
        assert (topic, partition, offsets, delivery) == (group, "0", "0 to 2", "1")
        there = broker.wait_share_group(group, members=1)
        assert holder == there.members[0].member_id
        locked_until_ms = there.partitions[0].records[0].locked_until_ms
        assert locked_until_ms is not None
        assert abs(datetime.fromisoformat(until).timestamp() - locked_until_ms / 1000) < 1
        assert rows_of(page, "Archived") == [["none"]]
        member.acknowledge(records[0], AcknowledgeType.ACCEPT)
        member.acknowledge(records[1], AcknowledgeType.REJECT)
        member.acknowledge(records[2], AcknowledgeType.RELEASE)
        member.commit_sync(START_S)
        page = get(browser, "/group", id=group).text
        assert rows_of(page, "In flight") == [["no member has a record"]]
        assert rows_of(page, "Archived") == [[group, "0", "1", "rejected by its member", "1", holder]]


def test_what_only_a_development_broker_shows_is_missed_with_its_reason(
    client: MakeClient, broker: Broker, group: str
) -> None:
    worked(broker, group)
    assert "kpybroker console --control URL" in get(client(), "/group", id=group).text
    assert "what the group holds is not known" in get(client(control="http://127.0.0.1:1"), "/group", id=group).text


def test_what_was_archived_before_the_leader_began_has_no_reason() -> None:
    run = {"first": 4, "last": 9, "state": "archived", "delivery_count": 5, "member_id": None, "locked_until_ms": None}
    known = {"first": 6, "last": 7, "reason": "rejected", "delivery_count": 1, "member_id": "m"}
    channel = Channel({"topic": "t", "partition": 0, "records": [run], "archived": [known]})
    found = held(channel, "g", Notes())  # type: ignore[arg-type]
    assert found is not None
    assert [(row["first"], row["last"], row["reason"]) for row in found.archived] == [
        (4, 5, UNKNOWN),
        (6, 7, "rejected by its member"),
        (8, 9, UNKNOWN),
    ]


def test_rows_have_a_bound() -> None:
    run = {"state": "acquired", "delivery_count": 1, "member_id": "m", "locked_until_ms": 0}
    runs = [{"first": 2 * number, "last": 2 * number, **run} for number in range(ROWS_MAX + 7)]
    channel = Channel({"topic": "t", "partition": 0, "records": runs, "archived": []})
    found = held(channel, "g", Notes())  # type: ignore[arg-type]
    assert found is not None
    assert (len(found.in_flight), found.left_out) == (ROWS_MAX, 7)


class Channel:
    """A control channel of one partition."""

    def __init__(self, partition: dict[str, Any]) -> None:
        self.partition = partition

    def call(self, method: str, group: str) -> Any:
        assert (method, group) == ("share_group", "g")
        return {"partitions": [self.partition]}
