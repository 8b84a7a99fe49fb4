"""The page of a streams group (KIP-1071): its topology, the tasks of its members, and its offsets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient, facts_of, rows_of
from tests.console.test_groups import get
from tests.support.requests.streams_application import SETTLE_S, UNASSIGNED, Application
from tests.support.requests.streams_group_requests import counting, topology


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """Of the topic and of the group."""
    return str(request.node.originalname)


@pytest.fixture
def application(broker: Broker, name: str) -> Iterator[Application]:
    """Of a topic with two partitions, which have two records each."""
    broker.create_topic(name, partitions=2)
    broker.produce(name, ["a", "b", "c", "d"])
    with WireCluster(Settings(broker.bootstrap_servers, {}, SETTLE_S, "the test")) as cluster:
        yield Application(cluster, name)


def test_it_shows_the_topology_tasks_and_lag(client: MakeClient, application: Application, name: str) -> None:
    application.join(counting(name))
    application.commit(1)
    browser = client()
    page = get(browser, "/group", id=name).text
    facts = facts_of(page)
    assert (facts["State"], facts["Type"], facts["Assignor"], facts["Members"]) == ("Stable", "streams", "sticky", "1")
    assert facts["Topology epoch"] == "0"
    assert [row[0] for row in rows_of(page, "Topology")] == ["0", "1"]
    assert name in rows_of(page, "Topology")[0][1]
    (member,) = rows_of(page, "Members")
    assert (member[0], member[3], member[5]) == ("one", "p", "0_0, 0_1, 1_0, 1_1")
    offsets = {tuple(row[:2]): row[2:5] for row in rows_of(page, "Offsets")}
    assert offsets[name, "0"] == ["1", "2", "1"]
    assert "share group" not in page
    (listed,) = rows_of(get(browser, "/groups", q=name, type="streams").text, "Groups")
    assert "streams" in listed


def test_one_that_waits_for_its_topics_says_so(client: MakeClient, application: Application, name: str) -> None:
    application.beat(0, rebalance_timeout_ms=60_000, process_id="p", topology=topology(f"{name}-none"), **UNASSIGNED)
    page = get(client(), "/group", id=name).text
    assert facts_of(page)["State"] == "NotReady"
    assert "no member has tasks" in page
