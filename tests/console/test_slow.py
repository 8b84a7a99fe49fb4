"""A cluster that responds late, or not at all: no page says of it what only a response could say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.client.actions import seek
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import Settings
from kpybroker.client.direct.cluster import DirectCluster, can_be_used
from kpybroker.console.app import make_app
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.queries import groups
from kpybroker.console.web.live import CLIENT_ID, Live, Notes
from kpybroker.testing import Broker
from tests.console.conftest import HERE, START_S, MakeClient, settings_for


@contextmanager
def held(broker: Broker, api: str) -> Iterator[Any]:
    """Requests of the console wait until the end."""
    fault = broker.channel.call("add_fault", match={"api": api, "client_id": CLIENT_ID}, act={"hold": True})
    try:
        yield fault
    finally:
        broker.channel.call("remove_fault", id=fault["id"])


def assert_is_late(broker: Broker, path: str, api: str) -> None:
    """A page that waits for this API says so, and not that there is no group."""
    settings = settings_for(broker.bootstrap_servers)
    app = make_app(ConsoleOptions(settings), Live(settings, page_s_max=START_S, request_s_max=0.2))
    with TestClient(app, base_url=HERE) as browser, held(broker, api):
        page = browser.get(path)
    assert page.status_code == 503
    assert "does not respond within 0.2 seconds" in page.text
    assert "there is no group" not in page.text


@pytest.fixture(scope="module", autouse=True)
def readers(broker: Broker) -> None:
    """Two groups that have read a record."""
    for group in ("slow-a", "slow-b"):
        consumer = broker.consumer(group_id=group, auto_offset_reset="earliest")
        consumer.subscribe(["orders"])
        while not consumer.consume(1, timeout=1):
            pass
        consumer.commit(asynchronous=False)
        consumer.close()


def test_two_pages_of_groups_wait_for_slow_metadata(client: MakeClient, broker: Broker) -> None:
    browser, statuses = client(), []

    def get(name: str) -> None:
        statuses.append(browser.get("/group", params={"id": name}).status_code)

    threads = [threading.Thread(target=get, args=(name,)) for name in ("slow-a", "slow-b")]
    with held(broker, "Metadata") as fault:
        for thread in threads:
            thread.start()
        while broker.channel.call("faults")[-1]["holds"] < 2:
            threading.Event().wait(0.01)
        assert broker.channel.call("faults")[-1]["id"] == fault["id"]
    for thread in threads:
        thread.join(START_S)
    assert statuses == [200, 200]


@pytest.mark.parametrize(
    "path", ["/group?id=slow-a", "/change/group-move?group=slow-a&to=start&preview=1", "/group?id=none"]
)
@pytest.mark.parametrize("api", ["DescribeGroups", "FindCoordinator", "Metadata"])
def test_a_group_is_missing_only_where_the_cluster_said_so(broker: Broker, path: str, api: str) -> None:
    assert_is_late(broker, path, api)


def test_what_the_cluster_says_is_missing_is_missing(client: MakeClient) -> None:
    browser = client()
    for path, status in (("/group?id=none", 404), ("/change/group-move?group=none&to=start&preview=1", 400)):
        page = browser.get(path)
        assert (page.status_code, "there is no group none" in page.text) == (status, True)


def test_a_broker_that_does_not_list_its_groups_is_a_note(broker: Broker) -> None:
    # Long enough for all that is asked before.
    settings = settings_for(broker.bootstrap_servers)._replace(properties={"client.id": CLIENT_ID}, timeout_s=3)
    cluster, notes = DirectCluster(settings), Notes()
    assert "orders" in cluster.metadata().topics
    with held(broker, "ListGroups"):
        found = groups.listed(cluster, groups.Filter(text="slow-"), notes)
    assert found.rows == []
    assert "does not respond within 3 seconds" in notes.items[0]["cause"]
    cluster.close()


def test_connections_are_used_again_and_not_after_a_broker_has_closed_one(broker: Broker) -> None:
    cluster = DirectCluster(settings_for(broker.bootstrap_servers))
    assert "orders" in cluster.metadata().topics
    opened = cluster.admin.wire
    assert cluster.is_usable()
    assert cluster.admin.wire is opened
    opened.any()._socket.shutdown(2)
    assert not cluster.is_usable()
    cluster.close()
    assert "orders" in cluster.metadata().topics
    cluster.close()


def test_offsets_by_time_and_of_places_that_are_none(broker: Broker) -> None:
    cluster = DirectCluster(settings_for(broker.bootstrap_servers))
    with pytest.raises(CommandError, match="there is no group none"):
        seek.preview(cluster, "none", seek.SeekOptions("start"), Notes())
    found = cluster.admin.topics.offsets({("orders", 0): -2, ("orders", 7): -1, ("gone", 0): -1}, 0)
    assert found["orders", 0].offset == 0
    assert "no topic has such a partition" in found["orders", 7].cause
    assert found["gone", 0].name == "UNKNOWN_TOPIC_OR_PARTITION"
    cluster.close()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, True),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, True),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}, False),
        ({"security.protocol": "SASL_PLAINTEXT"}, False),
        ({"security.protocol": "SSL", "ssl.keystore.location": "client.p12"}, False),
    ],
)
def test_logins_that_only_librdkafka_has_keep_it(properties: dict[str, str], expected: bool) -> None:
    assert can_be_used(Settings("127.0.0.1:1", properties, 1.0, "the test")) is expected
