"""Several clusters in one browser: a switch in the side bar, two tabs of two clusters, one that is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from compat_tests.console.conftest import START_S, OpenPage, barriers_of, console
from compat_tests.console.pictures import taken
from compat_tests.console.test_pictures import SCREEN
from kpybroker.testing import Broker

pytestmark = pytest.mark.wide


@pytest.fixture(scope="module")
def several() -> Iterator[str]:
    """A console of `test`, `production`, and `staging`, which is away."""
    with Broker(topics={"orders": 1}, start_timeout=START_S) as one:
        one.produce("orders", [("k", "v")])
        with Broker(topics={"orders": 1, "payments": 1}, start_timeout=START_S) as other:
            other.produce("payments", [("a", "1"), ("b", "2"), ("c", "3")])
            clusters = (f"test={one.bootstrap_servers}", f"production={other.bootstrap_servers}", "staging=127.0.0.1:1")
            with console(
                *(text for cluster in clusters for text in ("--cluster", cluster)), "--allow-changes"
            ) as found:
                yield found


def test_the_front_page_says_which_respond(
    several: str, open_page: OpenPage, axe_source: str, request: pytest.FixtureRequest
) -> None:
    page = open_page(several, allows_failures=True, color_scheme="light", **SCREEN)
    table = page.get_by_role("region", name="Clusters")
    expect(table.get_by_text("responds")).to_have_count(2)
    expect(table.get_by_text("away")).to_be_visible()
    directory = request.config.getoption("--console-pictures")
    if directory:
        taken(page, "").save(Path(directory) / "clusters.png", optimize=True)
    assert barriers_of(page, axe_source) == []
    page.get_by_role("link", name="staging").first.click()
    expect(page.get_by_role("alert").first).to_be_visible()
    page.goto(several)
    page.get_by_role("link", name="production").last.click()
    expect(page).to_have_title("Cluster · production · kpybroker console")


def test_the_switch_leads_to_the_same_page_of_another_cluster(
    several: str, open_page: OpenPage, axe_source: str
) -> None:
    page = open_page(f"{several}/c/test/topics")
    expect(page.get_by_role("region", name="Topics")).not_to_contain_text("payments")
    page.locator(".clusters summary").click()
    assert barriers_of(page, axe_source) == []
    page.set_viewport_size({"width": 1440, "height": 800})
    page.locator(".clusters").get_by_role("link", name="production").click()
    expect(page).to_have_url(f"{several}/c/production/topics")
    expect(page.get_by_role("region", name="Topics")).to_contain_text("payments")
    page.keyboard.press("Control+k")
    page.keyboard.type("pay")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="payments").click()
    expect(page).to_have_url(f"{several}/c/production/topics/payments")


def test_two_tabs_change_two_clusters(several: str, open_page: OpenPage) -> None:
    """The form of the first tab is of its cluster, whatever the second one of the same browser shows since."""
    first = open_page(f"{several}/c/test/change/topic-delete?topic=orders&preview=1")
    second = first.context.new_page()
    second.goto(f"{several}/c/production/topics/orders")
    first.get_by_label("Type orders again").fill("orders")
    first.get_by_role("button", name="Delete").click()
    expect(first.get_by_role("status").first).to_contain_text("Done.")
    second.reload()
    expect(second.get_by_role("heading", name="orders")).to_be_visible()
    first.goto(f"{several}/c/test/topics")
    expect(first.get_by_role("region", name="Topics")).not_to_contain_text("orders")


def test_messages_are_followed_and_charts_drawn_in_a_cluster(several: str, open_page: OpenPage) -> None:
    page = open_page(f"{several}/c/production/topics/payments/messages")
    page.get_by_role("button", name="Follow live").click()
    expect(page.locator("#summary[data-following]")).to_be_visible()
    page.goto(f"{several}/c/production/topics/payments")
    expect(page.locator("[data-chart] canvas").first).to_be_visible()


def test_a_record_opens_next_to_its_list_in_a_cluster(several: str, open_page: OpenPage) -> None:
    place = f"{several}/c/production/topics/payments/messages"
    page = open_page(place)
    drawer = page.get_by_role("dialog")
    page.locator("#messages a").first.click()
    expect(drawer.get_by_role("heading", name="payments-0 at 2")).to_be_visible()
    drawer.get_by_role("button", name="Next").click()
    expect(drawer.get_by_role("heading", name="payments-0 at 1")).to_be_visible()
    drawer.get_by_role("link", name="Open its page").click()
    expect(page).to_have_url(f"{place}/0/1")
    for link, offset in (("Next", 2), ("Previous", 1), ("Previous", 0)):
        page.get_by_role("link", name=link).click()
        expect(page).to_have_url(f"{place}/0/{offset}")
    page.get_by_role("link", name="Previous").click()
    expect(page.get_by_role("status")).to_contain_text("There is no message before this one")
