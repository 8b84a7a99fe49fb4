"""Every page in a real browser: no barrier, no sideways scrolling at 360 px, in light and in dark, by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from compat_tests.console.conftest import OpenPage, barriers
from kpybroker.testing import Broker

PAGES = {
    "cluster": "/",
    "topics": "/topics",
    "topic": "/topics/orders",
    "configuration": "/topics/orders/configuration",
    "messages": "/topics/orders/messages",
    "message": "/topics/orders/messages/0/0",
    "produce": "/topics/orders/produce",
    "readers": "/topics/orders/groups",
    "replication": "/replication",
    "log-dirs": "/log-dirs",
    "transactions": "/transactions?topic=orders",
    "access": "/access",
    "groups": "/groups?lag=1",
    "group": "/group?id=billing",
    "move": "/group/move?id=billing&to=start",
    "forget": "/group/forget?id=billing",
}
WIDE: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
NARROW: dict[str, Any] = {"viewport": {"width": 360, "height": 640}}


@pytest.fixture(scope="module", autouse=True)
def billing(kafka: Broker) -> None:
    """A group that has read the first half of `orders`."""
    consumer = kafka.consumer(group_id="billing", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe(["orders"])
    read = 0
    while read < 15:
        read += len(consumer.consume(15 - read, timeout=1))
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page(
    name: str, address: str, open_page: OpenPage, axe_source: str, picture: Callable[[Page, str], None]
) -> None:
    page = open_page(address + PAGES[name], **WIDE)
    expect(page.locator("h1")).to_be_visible()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert barriers(page, axe_source) == [], scheme
    picture(page, name)
    page.set_viewport_size(NARROW["viewport"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_schemes_differ(address: str, open_page: OpenPage) -> None:
    colours = []
    for scheme in ("dark", "light"):
        page = open_page(f"{address}/topics", color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]


def test_a_keyboard_is_enough(address: str, open_page: OpenPage) -> None:
    page = open_page(address)
    page.keyboard.press("Tab")
    expect(page.locator("a.skip")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Topics")
    page.locator("input[name=q]").focus()
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    expect(page.locator("tbody th a")).to_have_text(["orders"])


def test_pages_work_without_scripts(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders/messages", java_script_enabled=False)
    expect(page.locator("#messages tr")).to_have_count(30)
    expect(page.locator("[data-follow]")).to_be_hidden()
    page.locator("#messages a").first.click()
    expect(page.locator("h2").first).to_contain_text("Key")


def test_a_chart_is_drawn_once_there_are_numbers(address: str, kafka: Broker, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders")
    kafka.produce("orders", ["more"])
    expect(page.locator("[data-chart][data-drawn=yes] canvas")).to_be_visible()


def test_a_page_updates_itself(address: str, kafka: Broker, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics")
    kafka.create_topic("made-later", 1)
    expect(page.locator("tbody")).to_contain_text("made-later")
