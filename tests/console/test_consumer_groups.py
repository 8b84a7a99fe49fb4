"""The pages of groups of the new protocol (KIP-848): epochs, subscriptions, targets."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.console.conftest import START_S, MakeClient, facts_of, settings_for, text_of
from tests.support.programs.threaded_broker import threaded_broker

TOPIC = "read"
REGEX = "r.*<d>?"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a broker with a group whose first member sends no second heartbeat, so that it gives nothing up."""
    hour = {f"group_consumer_{name}session_timeout_ms": str(HOUR_MS) for name in ("max_", "")}
    with threaded_broker(tmp_path_factory.mktemp("groups"), **hour) as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(START_S)
        with WireCluster(settings_for(bootstrap)) as cluster:
            broker = cluster.coordinator("moving", GROUP)
            for member_id, regex in (("early", None), ("late", REGEX)):
                heartbeat = ConsumerGroupHeartbeatRequest(
                    group_id="moving",
                    member_id=member_id,
                    instance_id=f"static-{member_id}",
                    rebalance_timeout_ms=HOUR_MS,
                    subscribed_topic_names=[TOPIC],
                    subscribed_topic_regex=regex,
                    topic_partitions=[],
                )
                assert broker.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat).error_code == ErrorCode.NONE
        yield bootstrap


def test_groups_are_listed_by_type_and_by_states_that_only_they_have(client: MakeClient, address: str) -> None:
    browser = client(bootstrap=address)
    page = browser.get("/groups").text
    assert "Reconcilingconsumer" in text_of(page)
    assert facts_of(browser.get("/groups", params={"state": "Reconciling", "type": "consumer"}).text)["Groups"] == "1"
    for other in ({"state": "Assigning"}, {"type": "classic"}):
        assert facts_of(browser.get("/groups", params=other).text)["Groups"] == "0 of 1"


def test_a_page_shows_what_each_member_has_and_is_to_have(client: MakeClient, address: str) -> None:
    page = client(bootstrap=address).get("/group", params={"id": "moving"}).text
    facts = facts_of(page)
    assert (facts["State"], facts["Type"], facts["Assignor"]) == ("Reconciling", "consumer", "uniform")
    assert facts["Epoch"] == facts["Target epoch"] == "3"
    members = page[page.index("<h2>Members</h2>") :]
    rows = {}
    for row in re.findall(r"<tr>\s*(<th scope=\"row\".*?)</tr>", members, re.DOTALL):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        rows[cells[0].split()[0]] = cells
    assert "static: static-early" in rows["early"][0]
    assert rows["early"][3:] == ["2", TOPIC, f"{TOPIC}-0, {TOPIC}-1", rows["early"][-1]]
    assert rows["late"][3:] == ["3", f'{TOPIC}, <code class="bytes">{html.escape(REGEX)}</code>', "", rows["late"][-1]]
    assert sorted(row[-1] for row in rows.values()) == [f"{TOPIC}-0", f"{TOPIC}-1"]
