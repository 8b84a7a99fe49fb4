"""Pages with a broker's metrics, and without them."""

from __future__ import annotations

import pytest

from kpybroker.testing import Broker
from tests.console.conftest import MakeClient

PAGES = {"/": "cluster", "/topics/orders": "topic", "/replication": "replication"}


@pytest.fixture(scope="module")
def metrics_url(broker: Broker) -> str:
    """Of the shared broker, as the control channel says it."""
    found: str = broker.channel.call("status")["brokers"][0]["metrics"]
    return found


def test_pages_say_where_metrics_would_come_from(client: MakeClient) -> None:
    browser = client()
    for path in PAGES:
        assert "<code>--metrics-url</code>" in browser.get(path).text
    assert browser.get("/metrics/cluster").status_code == 404


def test_pages_have_numbers_and_charts(client: MakeClient, broker: Broker, metrics_url: str) -> None:
    host, port = broker.channel.address
    for found in ({"metrics": [metrics_url]}, {"control": f"http://{host}:{port}"}):
        browser = client(**found)
        for path, page in PAGES.items():
            assert f'data-chart="/metrics/{page}/' in browser.get(path).text
        assert "<dt>Bytes in</dt>" in browser.get("/metrics/cluster").text
        size = browser.get("/metrics/topic?topic=orders").text.split("Size of all replicas</dt><dd>")[1]
        assert size.split()[0] not in ("-", "0")
        times, sizes = browser.get("/metrics/topic/size.json?topic=orders").json()
        assert len(times) == len(sizes) >= 1
        assert browser.get("/metrics/replication/max-lag.json").json()[1] == [0]
        assert browser.get("/metrics/nothing").status_code == 404
        assert browser.get("/metrics/cluster/nothing.json").status_code == 404


def test_a_page_stays_when_the_metrics_are_away(client: MakeClient) -> None:
    browser = client(metrics=["http://127.0.0.1:1/metrics"])
    assert browser.get("/").status_code == 200
    away = browser.get("/metrics/cluster")
    assert away.status_code == 200
    assert "The metrics are away: http://127.0.0.1:1/metrics cannot be read" in away.text
    assert "fix: " in away.text
    assert browser.get("/metrics/cluster/messages.json").json() == [[], []]
