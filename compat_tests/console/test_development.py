"""The pages of a development broker in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from compat_tests.console.conftest import OpenPage, barriers, barriers_of, console
from kpybroker.testing import Broker


@pytest.fixture(scope="module")
def switchboard(kafka: Broker) -> Iterator[str]:
    host, port = kafka.channel.address
    with console("-b", kafka.bootstrap_servers, "--allow-changes", "--control", f"http://{host}:{port}") as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def logged(kafka: Broker) -> None:
    """The log has a line of a request that failed."""
    kafka.channel.call(
        "add_fault", match={"api": "Produce"}, act={"error": "NOT_LEADER_OR_FOLLOWER"}, trigger={"times": 1}
    )
    producer = kafka.producer()  # over the wire, again after the error
    producer.produce("orders", "logged", "k")
    producer.flush()


PAGES = {
    "requests": "/requests",
    "logs": "/logs?logger=kafka.request.logger&text=Produce",
    "faults": "/faults",
    "clock": "/clock",
    "cluster": "/",
    "replication": "/replication",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, switchboard: str, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(switchboard + PAGES[name], viewport={"width": 1280, "height": 800})
    expect(page.locator("main table, main dl").first).to_be_visible()
    if name == "logs":
        expect(page.locator("tbody")).to_contain_text("Completed request")
    assert barriers_of(page, axe_source) == []


def test_a_fault_is_switched_on_and_off(switchboard: str, kafka: Broker, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(f"{switchboard}/faults")
    page.locator("[name=api]").fill("DescribeAcls")
    page.locator("[name=act]").select_option("observe")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("tbody")).to_contain_text("DescribeAcls")
    assert barriers(page, axe_source) == []
    page.get_by_role("button", name="Remove all faults").click()
    expect(page.locator("tbody")).to_have_text("none")
    assert kafka.channel.call("faults") == []


def test_the_clock_is_moved(switchboard: str, kafka: Broker, open_page: OpenPage) -> None:
    before = kafka.channel.call("clock")["ahead_ms"]
    page = open_page(f"{switchboard}/clock")
    shown = page.locator("#live dd").last.inner_text()
    page.locator("[name=unit]").select_option("hours")
    page.get_by_role("button", name="Advance").click()
    expect(page.locator("#live dd").last).not_to_have_text(shown)
    assert kafka.channel.call("clock")["ahead_ms"] - before > 3_000_000


def test_a_topic_has_numbers_and_charts_of_the_metrics(
    switchboard: str, kafka: Broker, open_page: OpenPage, axe_source: str
) -> None:
    page = open_page(f"{switchboard}/topics/orders", viewport={"width": 1280, "height": 1400})
    expect(page.locator("#metrics")).to_contain_text("Size of all replicas")
    kafka.produce("orders", [("k", "more")])
    expect(page.locator(".charts [data-drawn=yes] canvas")).to_have_count(3)  # nothing has read the topic
    assert barriers_of(page, axe_source) == []


def test_a_client_has_the_metrics_that_it_pushed(
    switchboard: str, kafka: Broker, open_page: OpenPage, axe_source: str
) -> None:
    kafka.subscribe_client_metrics(interval_ms=500)
    producer = kafka.producer(client_id="shop-1", enable_metrics_push=True, client_rack="eu-1")
    producer.produce("orders", "one", "k")
    producer.flush()
    kafka.wait_client_metrics("shop-1", name="org.apache.kafka.producer.request.latency.max", pushes=2)
    page = open_page(f"{switchboard}/clients", viewport={"width": 1280, "height": 800})
    assert barriers(page, axe_source) == []
    page.get_by_role("link", name="shop-1").click()
    expect(page.locator("h1")).to_have_text("Client shop-1")
    expect(page.locator("tbody")).to_contain_text("org.apache.kafka.producer.request.latency.max")
    assert barriers_of(page, axe_source) == []
    page.locator("main [name=q]").fill("queue.time")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    kafka.unsubscribe_client_metrics()


def test_a_request_leads_to_its_log_lines(switchboard: str, open_page: OpenPage) -> None:
    page = open_page(f"{switchboard}/requests?api=Metadata")
    page.locator("tbody a[href^='/logs']").first.click()
    expect(page.locator("h1")).to_have_text("Logs")
    expect(page.locator("[name=client_id]")).not_to_have_value("")


def test_a_request_leads_to_what_its_client_has_pushed(switchboard: str, open_page: OpenPage) -> None:
    page = open_page(f"{switchboard}/requests?api=Metadata")
    page.locator("tbody a[href^='/clients']").first.click()
    expect(page.locator("h1")).to_have_text("Clients")
    expect(page.locator("[name=client_id]")).not_to_have_value("")
