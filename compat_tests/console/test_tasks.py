"""What people open the console for, from the front page: reading tasks, each in four clicks at most.

A click is a link, a button, a box or the choice of an option; what is typed is none, and Enter sends it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from playwright.sync_api import Page, expect

from compat_tests.console import shop
from compat_tests.console.conftest import START_S, OpenPage, console
from compat_tests.support.kafkas import kafka_3, kafka_4
from kpybroker.testing import Broker

pytestmark = pytest.mark.wide

CLICKS_MAX: Final = 4
OURS: Final = "ours"
HOUR_MS: Final = 3_600_000
SEARCH_MS: Final = 300_000
"""A million records are read in seconds where nothing else runs."""


class Place(NamedTuple):
    """A console, and whether its cluster is a development broker of ours."""

    address: str
    is_ours: bool
    events_ms: int
    """The time of the first of a million records."""


@contextmanager
def _ours(_: Path) -> Iterator[tuple[str, list[str]]]:
    with Broker(start_timeout=START_S) as broker:
        host, port = broker.channel.address
        yield broker.bootstrap_servers, ["--control", f"http://{host}:{port}"]


@contextmanager
def _kafka(start: Callable[[Path], Any], directory: Path) -> Iterator[tuple[str, list[str]]]:
    with start(directory) as bootstrap:
        yield bootstrap, []


Start = Callable[[Path], AbstractContextManager[tuple[str, list[str]]]]
CLUSTERS: Final[Mapping[str, Start]] = {
    OURS: _ours,
    "3.9": lambda directory: _kafka(kafka_3, directory),
    "4.3": lambda directory: _kafka(kafka_4, directory),
}


@pytest.fixture(scope="module", params=CLUSTERS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A console of a shop's cluster, with one group that runs and a transaction that is open."""
    with ExitStack() as stack:
        start = CLUSTERS[request.param](tmp_path_factory.mktemp("cluster"))
        bootstrap, more = stack.enter_context(start)
        shop.fill(bootstrap)
        events_ms = shop.write_events(bootstrap)
        settings = {"group.id": "fulfilment", "client.id": "picker-1", "max.poll.interval.ms": HOUR_MS}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        stack.callback(consumer.close)
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.5)
        ledger = {"transactional.id": "ledger", "transaction.timeout.ms": 900_000}
        producer = Producer({"bootstrap.servers": bootstrap, **ledger})
        producer.init_transactions(START_S)
        producer.begin_transaction()
        producer.produce("invoices", "pending", "ledger")
        producer.flush()
        stack.callback(producer.abort_transaction, START_S)
        yield Place(stack.enter_context(console("-b", bootstrap, *more)), request.param == OURS, events_ms)


class Reader:
    """Someone who begins at the front page, and whose clicks are counted."""

    def __init__(self, page: Page, place: Place) -> None:
        self.page = page
        self.place = place
        self.clicks = 0

    def click(self, name: str, role: Any = "link", where: str = "body") -> None:
        self.clicks += 1
        self.page.locator(where).get_by_role(role, name=name, exact=True).first.click()

    def row(self, text: str) -> str:
        """The text of the row of a table that has this text."""
        found = self.page.locator("main tbody tr", has_text=text).first
        expect(found).to_be_visible()
        return found.inner_text()

    def choose(self, name: str, value: str) -> None:
        self.clicks += 1
        self.page.locator(f"main select[name={name}]").select_option(value)

    def type(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)

    def enter(self) -> None:
        self.page.keyboard.press("Enter")

    def sees(self, text: str) -> None:
        expect(self.page.locator("main")).to_contain_text(text)


def _topic(reader: Reader, name: str, tab: str = "") -> None:
    reader.click("Topics")
    reader.click(name, where="main")
    if tab:
        reader.click(tab, where="main")


def brokers_and_controller(reader: Reader) -> None:
    reader.sees("Controller")
    assert "controller" in reader.row("127.0.0.1")


def a_message_by_its_key(reader: Reader) -> None:
    """One of the first of a million: all the others are read before it."""
    key = shop.event_key(12_345)
    _topic(reader, shop.EVENTS, "Messages")
    reader.type("Key contains", key)
    reader.click("Show", "button")
    expect(reader.page.locator("#messages tr", has_text=key)).to_be_visible(timeout=SEARCH_MS)


def the_last_five_minutes_in_order(reader: Reader) -> None:
    _topic(reader, shop.EVENTS, "Messages")
    reader.choose("start", "time")
    reader.type("Offset or time", "-5m")
    before_ms = time.time() * 1000 - 5 * shop.MINUTE_MS
    reader.enter()
    expect(reader.page).to_have_url(re.compile("at=-5m"))
    reader.page.wait_for_load_state()
    after_ms = time.time() * 1000 - 5 * shop.MINUTE_MS
    rows = reader.page.locator("#messages tr")
    expect(rows).to_have_count(50)
    keys = [re.findall(r"event-(\d+)", text)[0] for text in rows.all_inner_texts()]
    first = int(keys[0])
    assert list(map(int, keys)) == list(range(first, first + 50))
    assert before_ms <= reader.place.events_ms + first * shop.EVENTS_STEP_MS <= after_ms + shop.EVENTS_STEP_MS


def the_whole_of_a_record(reader: Reader) -> None:
    _topic(reader, "orders", "Messages")
    reader.page.locator("#messages a").first.click()
    reader.clicks += 1
    reader.sees("trace-id")
    value = json.loads(reader.page.get_by_role("region", name="Value").inner_text())
    assert value["order"].startswith("A-4")


def why_a_group_lags(reader: Reader) -> None:
    reader.click("Groups")
    reader.click("billing", where="main")
    reader.sees("Empty")
    reader.sees("No consumer of this group runs now")


def which_groups_have_no_consumer(reader: Reader) -> None:
    reader.click("Groups")
    reader.choose("state", "Empty")
    reader.click("Show", "button")
    assert "Empty" in reader.row("billing")
    expect(reader.page.locator("main tbody")).not_to_contain_text("fulfilment")


def which_groups_lag(reader: Reader) -> None:
    reader.click("Groups")
    reader.choose("lag", "only")
    reader.click("Show", "button")
    reader.row("billing")
    expect(reader.page.locator("main tbody")).not_to_contain_text("invoicing")


def who_reads_a_partition(reader: Reader) -> None:
    reader.click("Groups")
    reader.click("fulfilment", where="main")
    assert "picker-1" in reader.row("orders")


def which_groups_read_a_topic(reader: Reader) -> None:
    _topic(reader, "orders", "Groups")
    for group in ("billing", "fulfilment", "loyalty"):
        reader.row(group)


def what_was_changed_in_a_configuration(reader: Reader) -> None:
    _topic(reader, "orders", "Configuration")
    found = reader.row("retention.ms")
    assert "7 days" in found
    assert "topic" in found


def how_long_records_are_kept(reader: Reader) -> None:
    _topic(reader, "audit.log", "Configuration")
    assert "-1" in reader.row("retention.ms")


def how_many_records_a_topic_has(reader: Reader) -> None:
    reader.click("Topics")
    assert "900" in reader.row("inventory.changes")


def how_large_a_topic_is(reader: Reader) -> None:
    reader.click("Topics")
    expect(reader.page.locator("main tbody tr", has_text="clickstream")).to_contain_text("KiB")


def a_topic_by_a_part_of_its_name(reader: Reader) -> None:
    reader.click("Topics")
    reader.type("Name contains", "changelog")
    reader.enter()
    expect(reader.page.locator("main tbody tr")).to_have_count(1)
    reader.row(shop.LONG)


def which_partitions_have_a_problem(reader: Reader) -> None:
    reader.click("Replication")
    reader.sees("none: every replica is in sync")


def how_full_the_disks_are(reader: Reader) -> None:
    reader.click("Log directories")
    assert "online" in reader.row("GiB")


def a_setting_of_a_broker(reader: Reader) -> None:
    reader.click(reader.page.locator("main tbody th a").first.inner_text(), where="main")
    reader.row("log.retention.hours")


def which_transactions_are_open(reader: Reader) -> None:
    reader.click("Transactions")
    assert "Ongoing" in reader.row("ledger")


def who_holds_a_topic_back(reader: Reader) -> None:
    reader.click("Transactions")
    reader.type("Producers of topic", "invoices")
    reader.enter()
    reader.sees("Producers of invoices")
    expect(reader.page.locator("main tbody strong")).to_have_count(1)


def internal_topics(reader: Reader) -> None:
    reader.click("Topics")
    reader.clicks += 1
    reader.page.get_by_label("internal topics").check()
    reader.click("Show", "button")
    assert "internal" in reader.row("__consumer_offsets")


def records_of_a_condition(reader: Reader) -> None:
    _topic(reader, "orders", "Messages")
    reader.type("JSONPath", "@.state == 'refused'")
    reader.click("Show", "button")
    rows = reader.page.locator("#messages tr")
    expect(rows.first).to_contain_text("refused")


TASKS: Final = (
    brokers_and_controller,
    a_message_by_its_key,
    the_last_five_minutes_in_order,
    the_whole_of_a_record,
    why_a_group_lags,
    which_groups_have_no_consumer,
    which_groups_lag,
    who_reads_a_partition,
    which_groups_read_a_topic,
    what_was_changed_in_a_configuration,
    how_long_records_are_kept,
    how_many_records_a_topic_has,
    how_large_a_topic_is,
    a_topic_by_a_part_of_its_name,
    which_partitions_have_a_problem,
    how_full_the_disks_are,
    a_setting_of_a_broker,
    which_transactions_are_open,
    who_holds_a_topic_back,
    internal_topics,
    records_of_a_condition,
)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_takes_four_clicks_at_most(place: Place, open_page: OpenPage, task: Callable[[Reader], None]) -> None:
    reader = Reader(open_page(place.address, viewport={"width": 1440, "height": 900}), place)
    task(reader)
    print(f"{task.__name__}: {reader.clicks} clicks")
    assert reader.clicks <= CLICKS_MAX


def test_a_request_that_failed_and_its_log(place: Place, open_page: OpenPage) -> None:
    if not place.is_ours:
        pytest.skip("Kafka shows no requests")
    reader = Reader(open_page(place.address), place)
    reader.click("Requests")
    reader.page.locator("tbody a", has_text="Log").first.click()
    expect(reader.page.locator("h1")).to_have_text("Logs")
