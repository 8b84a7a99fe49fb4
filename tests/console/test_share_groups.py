"""The pages of share groups (KIP-932): start offsets, members, and a move; nothing is committed."""

from __future__ import annotations

import html

import pytest

from kpybroker.testing import Broker
from tests.console.conftest import START_S, MakeClient, facts_of, token_of
from tests.console.test_groups import PLAN, get

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
        assert "Delete committed offsets" not in page
        assert "has members" in get(browser, "/group/move", id=group, to="start").text
    finally:
        member.close()


def test_it_is_listed_by_its_type_and_is_no_reader_of_a_topic(client: MakeClient, broker: Broker, group: str) -> None:
    worked(broker, group)
    browser = client()
    listed = get(browser, "/groups", q=group, type="share", lag="1").text
    assert "<td>share</td>" in listed
    assert f"/group?id={group}" not in get(browser, f"/topics/{group}/groups").text
    assert get(browser, "/group/lag.json", id=group).json()[1] == [0]


def test_a_preview_changes_nothing_and_its_form_moves_the_start_offset(
    client: MakeClient, broker: Broker, group: str
) -> None:
    worked(broker, group)
    browser = client(allow_changes=True)
    page = get(browser, "/group/move", id=group, to="start").text
    assert "would move" in page
    assert facts_of(get(browser, "/group", id=group).text)["Lag"] == "0"
    form = {"token": token_of(page), "plan": html.unescape(PLAN.findall(page)[0])}
    assert "<td>moved</td>" in browser.post("/group/move", params={"id": group}, data=form).text
    broker.wait_for(lambda: facts_of(get(browser, "/group", id=group).text)["Lag"] == str(RECORDS), START_S, "the lag")


def test_it_has_no_committed_offsets_to_delete(client: MakeClient, broker: Broker, group: str) -> None:
    worked(broker, group)
    assert "is a share group" in get(client(), "/group/forget", id=group).text
