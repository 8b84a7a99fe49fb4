"""Every page in a real browser: no barrier, no sideways scrolling at 360 px, in light and in dark, by keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from compat_tests.console.conftest import LOOKS, OTHER_LOOKS, START_S, OpenPage, barriers_of, console
from kpybroker.client.schemas.subjects import New, Subjects
from kpybroker.console.pages.routes import ROUTES
from kpybroker.testing import Broker, SchemaRegistry
from tests.console.connect.fake import SINK, FakeConnect, serving

PAGES = {
    "cluster": "/",
    "broker": "/brokers/0",
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
    "move": "/change/group-move?group=billing&to=start&preview=1",
    "forget": "/change/group-forget?group=billing",
    "logs of no development broker": "/logs",
    "health": "/health",
    "search": "/search?q=o",
    "compare": "/compare?a=orders&b=orders",
    "form of a change": "/change/topic-create",
}
AROUND = {
    "schemas": "/schemas",
    "schema": "/schema?subject=orders-value&version=2&with=1&look=1",
    "connectors": "/connect",
    "plugins": "/connect/plugins",
    "connector": "/connector?name=shipping",
    "form of a connector": f"/change/connector-create?plugin={SINK}",
    "connectors that are found": "/search?q=ing",
}
"""Pages of a console that has a schema registry and a Kafka Connect."""
ELSEWHERE = {
    "/clusters": "test_several",
    "/requests": "test_development",
    "/faults": "test_development",
    "/clock": "test_development",
    "/clients": "test_development",
    "/clients/{broker:int}/{instance}": "test_development",
    "/login": "test_login_is_reachable",
}
"""Routes that other tests look at."""
NO_PAGE = re.compile(
    r"/(state|health/now|logout|look|metrics/.*|group/lag.json|topics/\{name\}/"
    r"(rates.json|follow|search|download.*|produce-lines|messages/.*/raw))"
)
"""Parts of pages, data, and forms that are sent only."""
PREVENTED = """new Promise(done => document.addEventListener(
    "htmx:before:request", event => setTimeout(() => done(event.defaultPrevented)), {once: true}))"""
"""Whether the next update is prevented."""
FAILED = {"no such page": "/no-such-page", "no such topic": "/topics/nothing-here", "bad input": "/topics?page=x"}
"""Pages of errors."""
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


@pytest.mark.parametrize("looks", [LOOKS, pytest.param(OTHER_LOOKS, marks=pytest.mark.wide)], ids=["", "other looks"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page(
    name: str, address: str, open_page: OpenPage, axe_source: str, looks: Sequence[tuple[str, int]]
) -> None:
    page = open_page(address + PAGES[name], **WIDE)
    expect(page.locator("h1")).to_be_visible()
    assert barriers_of(page, axe_source, looks) == []


def test_each_page_is_looked_at() -> None:
    looked = [address.partition("?")[0] for address in (*PAGES.values(), *AROUND.values())]
    left = {
        route.path
        for route in ROUTES
        if not NO_PAGE.fullmatch(route.path) and not any(route.path_regex.fullmatch(path) for path in looked)
    }
    assert left == set(ELSEWHERE)


@pytest.fixture(scope="module")
def around(kafka: Broker) -> Iterator[str]:
    """A console with a subject of two versions, and a connector whose task has failed."""
    with SchemaRegistry(kafka, start_timeout=START_S) as registry, serving(FakeConnect()) as connect:
        subjects = Subjects(registry.url)
        for names in (("id",), ("id", "note")):
            fields = [{"name": name, "type": "string", "default": ""} for name in names]
            schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
            subjects.register("orders-value", New("AVRO", schema))
        connect.add("billing", table_url="http://tables", topics="orders")
        connect.add("shipping", SINK, "RUNNING", "FAILED", table_url="http://tables")
        arguments = ("-b", kafka.bootstrap_servers, "--allow-changes", "--schema-registry", registry.url)
        with console(*arguments, "--connect", f"etl={connect.url}") as found:
            yield found


@pytest.mark.wide
@pytest.mark.parametrize("name", AROUND)
def test_a_page_of_what_is_around(name: str, around: str, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(around + AROUND[name], **WIDE)
    expect(page.locator("h1")).to_be_visible()
    assert barriers_of(page, axe_source, (*LOOKS, *OTHER_LOOKS)) == []


@pytest.mark.wide
def test_a_form_of_a_connector_with_what_is_wrong(around: str, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(f"{around}{AROUND['form of a connector']}&name=x&preview=1", allows_failures=True, **NARROW)
    expect(page.locator("[aria-invalid=true]")).to_have_attribute("name", "config.table.url")
    assert barriers_of(page, axe_source, (*LOOKS, *OTHER_LOOKS)) == []


@pytest.mark.wide
def test_what_was_done_and_the_drawer(address: str, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(f"{address}/change/topic-create?topic=made-and-looked-at&preview=1", **WIDE)
    page.get_by_role("button", name="Create made-and-looked-at").click()
    expect(page.get_by_role("status")).to_contain_text("Done.")
    assert barriers_of(page, axe_source) == []
    page.goto(f"{address}/topics/orders/messages")
    page.locator("#messages a").first.click()
    expect(page.get_by_role("dialog").get_by_role("region", name="Value")).to_be_visible()
    assert barriers_of(page, axe_source, (*LOOKS, *OTHER_LOOKS)) == []


@pytest.mark.wide
def test_login_is_reachable(kafka: Broker, open_page: OpenPage, axe_source: str, tmp_path: Path) -> None:
    (password := tmp_path / "password").write_text("sesame")
    with console("-b", kafka.bootstrap_servers, "--password-file", str(password)) as found:
        page = open_page(found, **WIDE)
        expect(page.locator("h1")).to_be_visible()
        assert barriers_of(page, axe_source, (*LOOKS, *OTHER_LOOKS)) == []


@pytest.mark.parametrize("name", FAILED)
def test_a_page_of_an_error(name: str, address: str, open_page: OpenPage, axe_source: str) -> None:
    page = open_page(address + FAILED[name], allows_failures=True, **NARROW)
    expect(page.get_by_role("alert")).to_contain_text("fix: ")
    assert barriers_of(page, axe_source) == []


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
    for _ in ("the console", "the search", "Cluster", "Topics"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Topics")
    page.locator("main input[name=q]").focus()
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    expect(page.locator("tbody th a")).to_have_text(["orders"])


def test_pages_work_without_scripts(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders/messages", java_script_enabled=False)
    expect(page.locator("#messages tr")).to_have_count(30)
    expect(page.locator("[data-follow]")).to_be_hidden()
    page.locator("#messages a").first.click()
    expect(page.locator("main h2").first).to_contain_text("Key")


def test_a_chart_is_drawn_once_there_are_numbers(address: str, kafka: Broker, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders")
    kafka.produce("orders", ["more"])
    expect(page.locator("[data-chart][data-drawn=yes] canvas")).to_be_visible()


def updated(page: Page) -> None:
    """Return once the part of the page that updates itself has done so."""
    page.evaluate("document.querySelector('#live dd').textContent = 'before'")
    expect(page.locator("#live dd").first).not_to_have_text("before")


@pytest.mark.wide
def test_an_update_keeps_the_focus_and_the_scrolling(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders", **NARROW)
    table = page.get_by_role("region", name="Partitions")
    table.evaluate("table => { table.scrollLeft = 40; }")
    table.focus()
    updated(page)
    expect(table).to_be_focused()
    assert table.evaluate("table => table.scrollLeft") == 40
    page.goto(f"{address}/topics")
    page.get_by_role("link", name="orders").focus()
    updated(page)
    expect(page.get_by_role("link", name="orders")).to_be_focused()


def test_updates_pause_while_the_reader_wants_it(address: str, kafka: Broker, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics/orders/messages", hurries=True)
    expect(page.get_by_role("button", name="Pause updates")).to_be_hidden()
    page.goto(f"{address}/topics")
    updated(page)
    button = page.get_by_role("button", name="Pause updates")
    button.press("Space")
    expect(button).to_have_attribute("aria-pressed", "true")
    kafka.create_topic("made-meanwhile", 1)
    assert page.evaluate(PREVENTED)
    assert "made-meanwhile" not in page.locator("tbody").inner_text()
    button.press("Space")
    expect(page.locator("tbody")).to_contain_text("made-meanwhile")


def test_a_group_is_previewed_with_the_keyboard_only(address: str, kafka: Broker, open_page: OpenPage) -> None:
    """From the first page to the preview of a group, by Tab, Enter, letters and arrows."""

    def tab_to(text: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if (
                page.evaluate("(document.activeElement.labels?.[0] || document.activeElement).innerText").strip()
                == text
            ):
                return
        raise AssertionError(f"{text} cannot be reached")

    page = open_page(address)
    for link, title in (("Groups", "Groups"), ("billing", "Group billing")):
        tab_to(link)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(title)
    page.locator("[name=to]").focus()
    page.keyboard.type("end")
    tab_to("Preview")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr", has_text="would move").first).to_be_visible()


def test_a_page_updates_itself(address: str, kafka: Broker, open_page: OpenPage) -> None:
    page = open_page(f"{address}/topics", hurries=True)
    kafka.create_topic("made-later", 1)
    expect(page.locator("tbody")).to_contain_text("made-later")
