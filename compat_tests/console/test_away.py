"""A broker that is down, slow or back: pages say so within their bound, and recover by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from compat_tests.console.conftest import START_S, OpenPage, barriers, console
from kpybroker.testing import Broker

STALE = re.compile(r"^Not updated since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z: ")


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1}, start_timeout=START_S) as broker:
        yield broker


def test_a_page_recovers_when_the_broker_is_back(own_broker: Broker, open_page: OpenPage, axe_source: str) -> None:
    with console("-b", own_broker.bootstrap_servers) as address:
        page = open_page(f"{address}/topics", allows_failures=True, hurries=True)
        expect(page.locator("tbody")).to_contain_text("orders")
        own_broker.channel.call("broker_down", broker=own_broker.channel.call("status")["brokers"][0]["id"])
        stale = page.locator("#stale")
        expect(stale).to_contain_text(STALE)
        expect(page.locator("tbody")).to_contain_text("orders")
        assert barriers(page, axe_source) == []
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("fix: ")
        assert barriers(page, axe_source) == []
        own_broker.channel.call("broker_up", broker=own_broker.channel.call("status")["brokers"][0]["id"])
        expect(page.locator("tbody")).to_contain_text("orders")


def test_a_slow_broker_is_said_and_other_pages_go_on(own_broker: Broker, open_page: OpenPage) -> None:
    with console("-b", own_broker.bootstrap_servers) as address:
        fault = own_broker.channel.call("add_fault", match={"api": "Metadata"}, act={"hold": True})
        page = open_page(f"{address}/topics", allows_failures=True, hurries=True)
        expect(page.get_by_role("alert")).to_contain_text("fix: ")
        own_broker.channel.call("remove_fault", id=fault["id"])
        expect(page.locator("tbody")).to_contain_text("orders")


def test_a_console_that_is_away_and_back_leaves_the_page(kafka: Broker, open_page: OpenPage) -> None:
    with console("-b", kafka.bootstrap_servers) as address:
        page = open_page(f"{address}/topics", allows_failures=True, hurries=True)
        expect(page.locator("tbody")).to_contain_text("orders")
    expect(page.locator("#stale")).to_contain_text("the console does not respond")
    expect(page.locator("#stale")).to_contain_text(STALE)
    expect(page.locator("tbody")).to_contain_text("orders")


def test_a_page_that_is_updated_again_says_nothing(own_broker: Broker, open_page: OpenPage) -> None:
    with console("-b", own_broker.bootstrap_servers) as address:
        page = open_page(f"{address}/topics/orders", allows_failures=True, hurries=True)
        fault = own_broker.channel.call("add_fault", match={"api": "Metadata"}, act={"hold": True})
        expect(page.locator("#stale")).to_contain_text("does not respond within 4 seconds")
        expect(page.locator("dd").first).to_have_text("1")
        own_broker.channel.call("remove_fault", id=fault["id"])
        expect(page.locator("#stale")).to_have_count(0)
