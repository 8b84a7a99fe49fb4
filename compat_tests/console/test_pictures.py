"""The pictures of docs and README: a shop's cluster, light and dark, two pixels for each of the page's.

`pytest compat_tests/console/test_pictures.py --all-versions --console-pictures docs/console` writes them; without the
directory they are taken, looked at and left.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer
from playwright.sync_api import Page, expect

from compat_tests.console import shop
from compat_tests.console.conftest import CONFIG, START_S, OpenPage, console
from compat_tests.console.pictures import taken
from kpybroker.testing import Broker

pytestmark = pytest.mark.wide

SCREEN: Final[dict[str, Any]] = {"viewport": {"width": 1180, "height": 740}, "device_scale_factor": 2}
WATCHED: Final = ("/topics/orders/rates.json", "/group/lag.json?id=billing", "/metrics/topic?topic=orders")
WATCH_S: Final = 2.0
POINTS: Final = 15
"""Of a chart, before the first picture is taken."""
PHONE: Final[dict[str, Any]] = {"viewport": {"width": 360, "height": 640}, "device_scale_factor": 2}


class Picture(NamedTuple):
    """A page, what has to be on it, which part is taken, and whether a dark one is taken too."""

    path: str
    seen: str
    part: str = ""
    has_dark: bool = False
    screen: dict[str, Any] = SCREEN


WHOLE: Final = {
    "topics": Picture("/topics", "clickstream", has_dark=True),
    "messages": Picture("/topics/orders/messages", "espresso-beans", has_dark=True),
    "group": Picture("/group?id=billing", "classic", has_dark=True),
    "topic-metrics": Picture("/topics/orders", "Size of all replicas"),
    "requests": Picture("/requests?api=Produce", "Produce"),
    "faults": Picture("/faults", "NOT_LEADER_OR_FOLLOWER"),
    "logs": Picture("/logs?text=Produce", "Completed request"),
    "client": Picture("/clients", "checkout-7f9c"),
}
PARTS: Final = {
    "part-frame": Picture("/topics", "orders", ".bar"),
    "part-cards": Picture("/group?id=fulfilment", "Stable", "dl.cards"),
    "part-status": Picture("/groups?lag=1", "Empty", ".table"),
    "part-filters": Picture("/topics/orders/messages", "orders", "main form"),
    "part-empty": Picture("/topics?q=ordres", "no topic matches", ".table"),
    "part-failed": Picture("/topics?page=x&q=ord", "fix: ", "main"),
    "part-small": Picture("/topics", "clickstream", screen=PHONE),
}


@pytest.fixture(scope="module")
def shop_console() -> Iterator[str]:
    """Of a shop with two groups that run, a fault that acts, and a client that pushes its metrics."""
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(config=CONFIG, start_timeout=START_S))
        shop.fill(broker.bootstrap_servers)
        broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="returns", expect_unused=True)
        broker.faults.delay("Fetch", 250, client_id="data-lake-1", expect_unused=True)
        broker.subscribe_client_metrics(interval_ms=500)
        stack.enter_context(_Work(broker))
        host, port = broker.channel.address
        control = f"http://{host}:{port}"
        address = stack.enter_context(console("-b", broker.bootstrap_servers, "--allow-changes", "--control", control))
        stack.enter_context(_watched(address))
        yield address


@contextmanager
def _watched(address: str) -> Iterator[None]:
    """Numbers that charts draw are asked for all the time, as by someone who has these pages open."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_S):
            for path in WATCHED:
                with urllib.request.urlopen(address + path) as response:
                    response.read()

    thread = threading.Thread(target=watch)
    thread.start()
    over.wait(WATCH_S * POINTS)
    try:
        yield
    finally:
        over.set()
        thread.join()


class _Work:
    """Orders are written and read while the pictures are taken."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._over = threading.Event()
        readers = (("fulfilment", "orders"), ("fulfilment", "orders"), ("invoicing", "payments"))
        self._threads = [threading.Thread(target=self._read, args=names) for names in readers]
        self._threads.append(threading.Thread(target=self._write))

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def _read(self, group: str, topic: str) -> None:
        servers = self._broker.bootstrap_servers
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "client.id": f"{group}-1"})
        consumer.subscribe([topic])
        while not self._over.is_set():
            consumer.consume(100, timeout=0.5)
        consumer.close()

    def _write(self) -> None:
        producer = self._broker.producer(client_id="checkout-7f9c", enable_metrics_push=True)
        chance = random.Random(8)
        for topic, key, value, headers, _ in itertools.cycle(shop.records(chance, 0)):
            if topic == "orders":
                producer.produce(topic, json.dumps(value), key, headers=headers)
                producer.flush()
                if self._over.wait(chance.uniform(0.1, 0.9)):
                    return

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def waited(page: Page, wanted: Picture) -> None:
    expect(page.locator("main")).to_contain_text(wanted.seen)
    expect(page.locator("main .wait")).to_have_count(0)
    charts = page.locator("[data-chart]")
    if charts.count():
        expect(charts.first.locator("canvas")).to_be_visible()


@pytest.mark.parametrize("name", [*WHOLE, *PARTS])
def test_a_picture(name: str, shop_console: str, open_page: OpenPage, request: pytest.FixtureRequest) -> None:
    wanted = (WHOLE | PARTS)[name]
    directory = request.config.getoption("--console-pictures")
    page = open_page(shop_console + wanted.path, allows_failures=True, color_scheme="light", **wanted.screen)
    waited(page, wanted)
    for scheme in ("light", "dark") if wanted.has_dark else ("light",):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(200)
        image = taken(page, wanted.part)
        assert len(image.getcolors() or ()) > 20, "an empty picture"
        if directory:
            image.save(Path(directory) / f"{name}{'-dark' if scheme == 'dark' else ''}.png", optimize=True)
