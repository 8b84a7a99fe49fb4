"""How pages look and are used: thirty rows, long names, colours by a switch, a menu, forms that keep what was typed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from compat_tests.console import shop
from compat_tests.console.conftest import START_S, OpenPage, barriers, console
from kpybroker.testing import Broker

DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
OPENS = "getComputedStyle(document.getElementById('menu')).display"


@pytest.fixture(scope="module")
def shop_console() -> Iterator[str]:
    with Broker(start_timeout=START_S) as broker:
        shop.fill(broker.bootstrap_servers)
        with console("-b", broker.bootstrap_servers) as address:
            yield address


def whole_rows(page: Page) -> int:
    """How many rows of the first table are wholly on the screen."""
    script = "[...document.querySelectorAll('main tbody tr')].map(row => row.getBoundingClientRect().bottom)"
    return sum(bottom <= page.viewport_size["height"] for bottom in page.evaluate(script) if page.viewport_size)


@pytest.mark.parametrize("path", ["/topics", "/topics?sizes=1", "/topics/orders/messages"])
def test_thirty_rows_are_on_a_screen(shop_console: str, open_page: OpenPage, path: str) -> None:
    page = open_page(shop_console + path, **DESK)
    expect(page.locator("main tbody tr").first).to_be_visible()
    assert whole_rows(page) >= 30
    page.get_by_role("button", name="Roomy rows").click()
    assert 10 < whole_rows(page) < 25


def test_a_long_name_is_shortened_in_its_middle_and_whole_to_hand(
    shop_console: str, open_page: OpenPage, axe_source: str
) -> None:
    page = open_page(f"{shop_console}/topics", **PHONE)
    link = page.get_by_role("link", name=shop.LONG)
    assert link.inner_text().strip() == shop.LONG
    width = "one => one.getBoundingClientRect().width"
    assert link.locator(".cut").evaluate(width) < 240
    expect(link.locator(".cut")).to_have_attribute("data-tail", shop.LONG[-12:])
    expect(link.locator(".mid")).to_have_attribute("title", shop.LONG)
    link.click()
    expect(page.locator("h1")).to_have_text(shop.LONG)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the name").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == shop.LONG
    assert barriers(page, axe_source) == []


@pytest.mark.parametrize("scripts", [True, False])
def test_colours_and_the_side_bar_are_switched_and_stay(shop_console: str, open_page: OpenPage, scripts: bool) -> None:
    page = open_page(f"{shop_console}/groups", java_script_enabled=scripts, color_scheme="light", **DESK)
    light = page.evaluate(BACKGROUND)
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    dark = page.evaluate(BACKGROUND)
    assert dark != light
    page.get_by_role("button", name="Narrow side bar").click()
    expect(page.locator("html")).to_have_attribute("data-bar", "narrow")
    page.wait_for_load_state("networkidle")
    page.get_by_role("link", name="Topics").click()
    expect(page.locator("h1")).to_have_text("Topics")
    assert page.evaluate(BACKGROUND) == dark
    assert page.locator(".bar").bounding_box()["width"] < 60  # type: ignore[index]
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="As the system").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "system")
    assert page.evaluate(BACKGROUND) == dark


@pytest.mark.parametrize("scripts", [True, False])
def test_a_small_screen_has_a_menu(shop_console: str, open_page: OpenPage, axe_source: str, scripts: bool) -> None:
    page = open_page(shop_console, java_script_enabled=scripts, **PHONE)
    assert page.evaluate(OPENS) == "none"
    page.get_by_role("button", name="Menu").press("Enter")
    assert page.evaluate(OPENS) == "flex"
    if scripts:
        assert barriers(page, axe_source) == []
    page.keyboard.press("Escape")
    assert page.evaluate(OPENS) == "none"
    page.get_by_role("button", name="Menu").press("Enter")
    page.get_by_role("link", name="Groups").click()
    expect(page.locator("h1")).to_have_text("Groups")


def test_a_table_scrolls_in_itself(shop_console: str, open_page: OpenPage) -> None:
    page = open_page(f"{shop_console}/topics/orders/messages", **PHONE)
    assert page.locator(".table").first.evaluate("table => table.scrollWidth > table.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


KEPT = {
    "/topics/orders/messages?limit=many&key=ada&path=$.total&start=oldest": {
        "limit": "many",
        "key": "ada",
        "path": "$.total",
        "start": "oldest",
    },
    "/topics?page=x&q=ord": {"q": "ord"},
    "/groups?page=x&q=bill&lag=only": {"q": "bill", "lag": "only"},
}


@pytest.mark.parametrize("path", KEPT)
def test_bad_input_keeps_the_form(shop_console: str, open_page: OpenPage, axe_source: str, path: str) -> None:
    page = open_page(shop_console + path, allows_failures=True, **DESK)
    expect(page.get_by_role("alert")).to_contain_text("fix: ")
    for name, value in KEPT[path].items():
        expect(page.locator(f"main form [name={name}]")).to_have_value(value)
    assert barriers(page, axe_source) == []


def test_what_is_loaded_later_waits_only_where_a_script_brings_it(shop_console: str, open_page: OpenPage) -> None:
    page = open_page(f"{shop_console}/topics", java_script_enabled=False, **DESK)
    expect(page.locator("tbody .wait").first).to_have_text("-")
    assert page.locator("tbody .wait").first.evaluate("one => getComputedStyle(one).fontSize") != "0px"
    page = open_page(f"{shop_console}/topics", **DESK)
    expect(page.locator("tbody .wait")).to_have_count(0)
    expect(page.locator("tbody tr", has_text="clickstream")).to_contain_text("KiB")


def test_an_empty_list_says_what_to_do(shop_console: str, open_page: OpenPage) -> None:
    page = open_page(f"{shop_console}/topics?q=no-such-topic", **DESK)
    page.get_by_role("link", name="Show all topics").click()
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
