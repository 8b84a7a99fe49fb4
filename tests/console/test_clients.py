"""The pages of clients that have pushed metrics: a real one, and one with texts that are no plain ones."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from kpybroker.testing import Broker
from kpybroker.testing.look import ClientMetrics
from tests.console.conftest import MakeClient
from tests.console.test_development import control_of

EVIL = '<b>"\x1b[31m&'


@pytest.fixture(scope="module")
def pushed(broker: Broker) -> Iterator[ClientMetrics]:
    """What a producer pushed, whose id is `EVIL`."""
    broker.subscribe_client_metrics(interval_ms=200)
    producer = broker.producer(client_id=EVIL, enable_metrics_push=True)
    try:
        producer.produce("orders", "one")
        producer.flush()
        yield broker.wait_client_metrics(EVIL, name="org.apache.kafka.producer.request.latency.max")
    finally:
        broker.unsubscribe_client_metrics()


@pytest.fixture
def browser(client: MakeClient, broker: Broker) -> TestClient:
    return client(control=control_of(broker))


def test_without_a_control_channel_there_are_no_such_pages(client: MakeClient) -> None:
    assert client().get("/clients").status_code == 404
    assert client().get("/clients/0/AAAA").status_code == 404


def test_clients_are_listed_and_filtered(browser: TestClient, pushed: ClientMetrics) -> None:
    page = browser.get("/clients").text
    assert f'href="/clients/0/{pushed.instance_id}"' in page
    assert pushed.software_name in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "&lt;b&gt;" in page
    assert pushed.instance_id in browser.get(f"/clients?client_id={quote(EVIL)}").text
    assert "none: clients push what a subscription asks for" in browser.get("/clients?client_id=stranger").text


def test_a_client_has_its_metrics(browser: TestClient, pushed: ClientMetrics) -> None:
    path = f"/clients/0/{pushed.instance_id}"
    page = browser.get(path).text
    assert '<th scope="row" class="bytes">org.apache.kafka.producer.request.latency.max</th>' in page
    assert "<b>" not in page
    assert "\x1b" not in page
    few = browser.get(f"{path}?q=queue.time").text
    assert "org.apache.kafka.producer.record.queue.time.avg" in few
    assert "org.apache.kafka.producer.request.latency.max" not in few
    assert "No name or label has this text." in browser.get(f"{path}?q=no-such-name").text


def test_a_client_that_is_not_known_is_not_found(browser: TestClient, pushed: ClientMetrics) -> None:
    for path in (f"/clients/7/{pushed.instance_id}", "/clients/0/AAAAAAAAAAAAAAAAAAAAAQ", "/clients/0/%3Cb%3E"):
        response = browser.get(path)
        assert response.status_code == 404
        assert "not known any more" in response.text


def test_requests_lead_to_the_metrics_of_their_client(browser: TestClient, pushed: ClientMetrics) -> None:
    assert f'href="/clients?client_id={quote(EVIL, safe="/")}"' in browser.get("/requests?api=PushTelemetry").text
