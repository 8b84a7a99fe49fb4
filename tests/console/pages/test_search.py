"""A search goes to the end: what a page did not read is said, searched as a stream of events, and goes on anywhere."""

from __future__ import annotations

import html
import json
import re
import uuid
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.client.direct.cluster import DirectCluster
from kpybroker.console.queries import messages
from kpybroker.console.queries.messages import Selection
from kpybroker.console.queries.records import downloads, scan
from kpybroker.console.queries.records.listing import placed, scan_of
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient, settings_for
from tests.console.test_messages import links, places, record

COUNT = 400


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Two partitions whose times alternate; one message in a hundred is wanted."""
    name = f"s-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    values = [f"needle {n}" if n % 100 == 50 else f"hay {n}" for n in range(COUNT)]
    broker.produce(name, [record(value, None, n % 2, 10**12 + n) for n, value in enumerate(values)])
    return name


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page reads thirty messages, in ranges that stay small."""
    monkeypatch.setattr(messages, "SCANNED_MAX", 30)
    monkeypatch.setattr(scan, "EACH_MAX", 10)


def events(browser: TestClient, page: str) -> list[tuple[str, Any]]:
    """Of the search that a page goes on with."""
    address = re.search(r'data-search="([^"]+)"', page)
    assert address is not None
    text = browser.get(html.unescape(address[1])).text
    return [
        (block.split("event: ")[1].split("\n")[0], json.loads(block.split("data: ")[1]))
        for block in text.split("\n\n")
        if "event: " in block
    ]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("start", ["oldest", "latest"])
def test_nothing_is_unread_in_silence_and_a_search_reads_it(client: MakeClient, topic: str, start: str) -> None:
    browser = client()
    page = browser.get(f"/topics/{topic}/messages?start={start}&value=needle&limit=8").text
    assert places(page) == []
    way = "newer" if start == "oldest" else "older"
    assert re.search(rf"0 shown, \d+ read \([^)]*\)\. \d+ {way} than 2001-[^:]+:[^:]+:[^:]+Z: not searched yet", page)
    found = events(browser, page)
    rows = [place for name, data in found if name == "message" for place in places(data)]
    wanted = [(n % 2, n // 2) for n in range(50, COUNT, 100)]
    assert rows == (wanted if start == "oldest" else wanted[::-1])
    name, end = found[-1]
    assert (name, end["link"]) == ("end", None)
    assert "4 shown" in end["summary"]
    assert f"Everything {way} was searched" in end["summary"]


@pytest.mark.usefixtures("small")
def test_a_search_ends_with_the_page_and_the_next_page_goes_on_behind_it(client: MakeClient, topic: str) -> None:
    browser = client()
    page = browser.get(f"/topics/{topic}/messages?start=oldest&value=needle&limit=1").text
    *_, (_, end) = events(browser, page)
    assert "1 shown" in end["summary"]
    page = browser.get(f"/topics/{topic}/messages?{end['link']}").text
    found = events(browser, page)
    assert [places(data) for name, data in found if name == "message"] == [[(0, 75)]]


def test_a_search_that_is_stopped_has_read_up_to_its_cut(broker: Broker, topic: str) -> None:
    cluster = DirectCluster(settings_for(broker.bootstrap_servers))
    wanted = Selection(topic, "oldest", limit=5)
    place = placed(cluster, wanted, True)
    stops = iter([False] * 25)
    seen: list[int] = []

    def accepts(one: Any) -> bool:
        seen.append(one.offset)
        return False

    with scan_of(cluster.settings, wanted, place, accepts) as scanning:
        assert list(scanning.records(lambda: next(stops, True))) == []
    assert place.timeline.left == COUNT - len(seen)
    assert 0 < len(seen) < COUNT
    cluster.close()


def test_schemas_that_a_filter_cannot_have_are_said(client: MakeClient, broker: Broker) -> None:
    name = f"schema-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, [record(b"\0\0\0\0\x07data")])
    page = client(registry="http://127.0.0.1:1").get(f"/topics/{name}/messages?path=%40.a").text
    assert "The JSONPath was not tried on some messages: http://127.0.0.1:1/schemas/ids/7 cannot be read" in page


# --- downloads


def test_a_download_is_the_page_in_its_order(client: MakeClient, topic: str) -> None:
    browser = client()
    page = browser.get(f"/topics/{topic}/messages?limit=7").text
    for _ in range(2):
        lines = browser.get(link_of(page, "jsonl")).text.splitlines()
        assert [(one["partition"], one["offset"]) for one in map(json.loads, lines)] == places(page)
        older = re.search(r'href="([^"]+)" id="older"', page)
        assert older is not None
        page = browser.get(f"/topics/{topic}/messages{html.unescape(older[1])}").text
    newer = re.search(r'href="([^"]+)" id="newer"', page)
    assert newer is not None
    page = browser.get(f"/topics/{topic}/messages{html.unescape(newer[1])}").text
    lines = browser.get(link_of(page, "jsonl")).text.splitlines()
    assert [(one["partition"], one["offset"]) for one in map(json.loads, lines)] == places(page)
    everything = browser.get(link_of(page, "jsonl", 1)).text.splitlines()
    assert len(everything) == COUNT
    assert json.loads(everything[0])["offset"] == COUNT // 2 - 1


def link_of(page: str, form: str, number: int = 0) -> str:
    return html.unescape(re.findall(rf'href="(/topics/[^"]*/download\.{form}\?[^"]*)"', page)[number])


def test_csv_keeps_null_empty_and_bytes_apart(client: MakeClient, broker: Broker) -> None:
    name = f"kinds-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, [record(None, "a"), record("", None), record(b"\xff", b"")])
    lines = client().get(f"/topics/{name}/download.csv?start=oldest").text.splitlines()[1:]
    assert [line.split(",")[3:] for line in lines] == [
        ["a", "", "h=", "text", "null"],
        ["", "", "h=", "null", "text"],
        ["", "/w==", "h=", "text", "base64"],
    ]


def test_decoded_lines_have_json_and_say_what_is_not_decoded(client: MakeClient, broker: Broker) -> None:
    name = f"decoded-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    values = ['{"a": [1, null]}', "text", None, b"\0\0\0\0\x07data", '{"a": 1, "a": 2}', '{"a": NaN}']
    broker.produce(name, [record(value, "k") for value in values])
    browser = client(registry="http://127.0.0.1:1")
    rows = list(map(json.loads, browser.get(f"/topics/{name}/download.decoded.jsonl?start=oldest").text.splitlines()))
    assert [row["value"] for row in rows] == [{"a": [1, None]}, "text", None, "\0\0\0\0\x07data", *values[4:]]
    assert "cannot be read" in rows[3]["not_decoded"]["value"]


def test_a_download_that_would_be_cut_breaks_off(
    client: MakeClient, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(downloads, "RECORDS_MAX", 10)
    browser = client()
    browser.get(f"/topics/{topic}/download.jsonl?start=oldest&all=1")
    assert "A download breaks off: it would be more than 10 messages" in caplog.text
    caplog.clear()
    assert len(browser.get(f"/topics/{topic}/download.jsonl?start=oldest&limit=10").text.splitlines()) == 10
    assert caplog.text == ""


def test_a_thousand_partitions_are_one_list_in_both_ways(client: MakeClient, broker: Broker) -> None:
    name = f"wide-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, messages.PLACES_MAX)
    used = [n * 37 % messages.PLACES_MAX for n in range(12)]
    broker.produce(name, [record(f"v{n}", None, partition, 10**12 + n) for n, partition in enumerate(used)])
    browser = client()
    pages, found = [], []
    target = "?start=oldest&limit=5"
    while target:
        page = browser.get(f"/topics/{name}/messages{target}").text
        pages.append([partition for partition, _ in places(page)])
        found.append(links(page))
        target = found[-1].get("newer", "")
    assert pages == [used[:5], used[5:10], used[10:]]
    page = browser.get(f"/topics/{name}/messages{found[-1]['older']}").text
    assert [partition for partition, _ in places(page)] == used[5:10]
