"""Messages: read from a position, filtered, downloaded, produced."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import uuid
from urllib.parse import urlencode

import pytest

from kpybroker.console.queries import messages
from kpybroker.console.queries.records import downloads
from kpybroker.testing import Broker, Record
from tests.console.conftest import MakeClient, token_of

PLACE = re.compile(r">(\d+) · (\d+)</a>")


def as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def record(
    value: str | bytes | None,
    key: str | bytes | None = None,
    partition: int = 0,
    at_ms: int = 10**12,
    header: tuple[str, str] = ("h", ""),
) -> Record:
    """A record to produce."""
    return Record("", partition, -1, at_ms, as_bytes(key), as_bytes(value), ((header[0], header[1].encode()),))


def places(page: str) -> list[tuple[int, int]]:
    return [(int(partition), int(offset)) for partition, offset in PLACE.findall(page)]


@pytest.fixture
def topic(broker: Broker) -> str:
    """Two partitions with five records each, the value of which is their number."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    broker.produce(
        name,
        [record(f'{{"n": {n}}}', f"k{n}", n % 2, 10**12 + n, ("h", str(n))) for n in range(10)],
    )
    return name


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [(1, 4), (0, 4), (1, 3), (0, 3), (1, 2), (0, 2), (1, 1), (0, 1), (1, 0), (0, 0)]),
        ({"limit": "2"}, [(1, 4), (0, 4)]),
        ({"start": "oldest", "limit": "2", "partitions": "0"}, [(0, 0), (0, 1)]),
        ({"start": "offset", "at": "3", "partitions": "1"}, [(1, 3), (1, 4)]),
        ({"start": "offset", "at": "-1"}, [(0, 4), (1, 4)]),
        ({"start": "time", "at": str(10**12 + 7)}, [(1, 3), (0, 4), (1, 4)]),
        ({"key": "k7"}, [(1, 3)]),
        ({"value": '"n": 8'}, [(0, 4)]),
        ({"header": "h=9"}, [(1, 4)]),
        ({"path": "@.n < 2"}, [(1, 0), (0, 0)]),
        ({"start": "oldest", "path": "@.n < 2"}, [(0, 0), (1, 0)]),
    ],
)
def test_reading(client: MakeClient, topic: str, query: dict[str, str], expected: list[tuple[int, int]]) -> None:
    page = client().get(f"/topics/{topic}/messages?{urlencode(query)}")
    assert page.status_code == 200
    assert places(page.text) == expected


def links(page: str) -> dict[str, str]:
    """The addresses of Older and Newer."""
    found = re.findall(r'href="([^"]+)" id="(older|newer)"', page)
    return {name: html.unescape(href) for href, name in found}


@pytest.mark.parametrize("query", ["start=oldest", "start=latest", "start=oldest&path=%40.n+%21%3D+5"])
def test_pages_are_one_list_in_both_ways(client: MakeClient, topic: str, query: str) -> None:
    browser = client()
    path = f"/topics/{topic}/messages"
    onward, back = ("older", "newer") if "latest" in query else ("newer", "older")
    pages, target = [], f"?{query}&limit=3"
    while target:
        page = browser.get(path + target).text
        pages.append(places(page))
        last, target = target, links(page).get(onward, "")
    everything = [(n % 2, n // 2) for n in range(10) if n != 5 or "path" not in query]
    assert [place for page in pages for place in page] == (everything[::-1] if "latest" in query else everything)
    again = []
    target = links(browser.get(path + last).text)[back]
    while target:
        page = browser.get(path + target).text
        again.append(places(page))
        target = links(page).get(back, "")
    shown = [place for page in reversed(again) for place in page]
    assert shown == [place for page in pages[:-1] for place in page]


@pytest.mark.parametrize(
    "query",
    [
        "start=x",
        "limit=0",
        "limit=201",
        "start=offset&at=x",
        "start=time&at=x",
        "partitions=9",
        "partitions=x",
        "cursor=x",
        "way=x",
        "as=x",
        "path=%24[",
    ],
)
def test_a_bad_query_is_an_error_of_the_reader(client: MakeClient, topic: str, query: str) -> None:
    assert client().get(f"/topics/{topic}/messages?{query}").status_code == 400


def test_hostile_bytes_are_text(client: MakeClient, broker: Broker) -> None:
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    evil = "<script>alert(1)</script>"
    records = [
        record(evil, evil, header=(evil, evil)),
        record(b"\xff\xfe\x00", b"\x00\x1b"),
        record(b"x" * 900_000 + b"</td><script>", None),
        record(None, "tombstone"),
    ]
    broker.produce(name, records)
    browser = client()
    page = browser.get(f"/topics/{name}/messages").text
    assert len(places(page)) == 4
    pages_ = [page, *(browser.get(f"/topics/{name}/messages/0/{offset}").text for offset in range(4))]
    for text in pages_:
        assert "<script>" not in text
        assert "\x00" not in text
        assert "\x1b" not in text
    assert len(page) < 20_000
    assert browser.get(f"/topics/{name}/messages/0/2/raw").content == b"x" * 900_000 + b"</td><script>"
    assert browser.get(f"/topics/{name}/messages/0/1/raw").headers["content-type"] == "application/octet-stream"


def test_one_read_is_bounded(client: MakeClient, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "SCANNED_MAX", 4)
    monkeypatch.setattr(messages, "BATCH", 1)
    page = client().get(f"/topics/{topic}/messages?start=oldest&key=none&limit=1").text
    assert "0 shown, 4 read (" in page
    assert "6 newer than" in page
    assert "not searched yet" in page
    assert 'data-search="' in page
    monkeypatch.setattr(messages, "PLACES_MAX", 1)
    assert client().get(f"/topics/{topic}/messages").status_code == 400


def test_null_empty_and_the_text_null_are_kept_apart_in_words(client: MakeClient, broker: Broker) -> None:
    name = f"nothing-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, [Record("", 0, -1, 1, None, b"", (("a", None), ("b", b""))), record("null", "null")])
    page = client().get(f"/topics/{name}/messages?start=oldest").text
    cells = re.findall(r'<td class="bytes">(.*?)</td>', page)
    null, empty = '<span class="tag">null</span>', '<span class="tag">empty</span>'
    assert [cell.strip() for cell in cells[:2]] == [null, empty]
    assert null in cells[2]
    assert empty in cells[2]
    assert [cell.strip() for cell in cells[3:5]] == ["null", "null"]


def test_an_offset_without_a_record(client: MakeClient, topic: str) -> None:
    for offset in ("5", "99999999"):
        assert "has no record at offset" in client().get(f"/topics/{topic}/messages/0/{offset}").text


def test_the_record_before_and_after_in_a_partition(client: MakeClient, broker: Broker) -> None:
    name = f"next-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    producer = broker.producer(transactional_id=name)
    producer.init_transactions(60)
    for value in ("a", "b"):  # a commit is at an offset between them
        producer.begin_transaction()
        producer.produce(name, value, partition=0)
        producer.commit_transaction(60)
    browser, path = client(), f"/topics/{name}/messages/0"
    assert browser.get(f"{path}/0?go=next").headers["location"] == f"{path}/2"
    assert browser.get(f"{path}/2?go=previous").headers["location"] == f"{path}/0"
    assert "There is no message before this one" in browser.get(f"{path}/0?go=previous").text
    last = browser.get(f"{path}/2?go=next")
    assert last.status_code == 200
    assert "There is no message after this one" in last.text


def test_downloads_have_what_the_filters_accept(client: MakeClient, topic: str) -> None:
    browser = client()
    lines = browser.get(f"/topics/{topic}/download.jsonl?start=oldest&path=%40.n+%3E+6")
    assert "attachment" in lines.headers["content-disposition"]
    assert sorted(json.loads(line)["key"] for line in lines.text.splitlines()) == ["k7", "k8", "k9"]
    rows = list(csv.reader(io.StringIO(browser.get(f"/topics/{topic}/download.csv?start=oldest").text)))
    assert rows[0] == ["partition", "offset", "timestamp", "key", "value", "headers", "key_is", "value_is"]
    assert len(rows) == 11
    assert browser.get(f"/topics/{topic}/download.exe").status_code == 400


def test_no_cell_is_a_formula() -> None:
    assert [downloads.cell(text) for text in ("=1+1", "+1", "@x", "a=1")] == ["'=1+1", "'+1", "'@x", "a=1"]


def test_producing_needs_allow_changes(client: MakeClient, topic: str) -> None:
    browser = client()
    assert "read-only" in browser.get(f"/topics/{topic}/produce").text
    token = token_of(client(password="x").get("/login").text)
    assert browser.post(f"/topics/{topic}/produce", data={"token": token, "value": "x"}).status_code == 403


def test_a_message_is_produced_and_copied(client: MakeClient, broker: Broker, topic: str) -> None:
    browser = client(allow_changes=True)
    form = browser.get(f"/topics/{topic}/produce").text
    fields = {"token": token_of(form), "key": "a", "value": "<b>é", "headers": "x=1\ny", "partition": "1"}
    done = browser.post(f"/topics/{topic}/produce", data=fields)
    assert done.headers["location"] == f"/topics/{topic}/messages/1/5"
    assert "&lt;b&gt;é" in browser.get(done.headers["location"]).text
    assert "&lt;b&gt;é" in browser.get(f"/topics/{topic}/produce?like=1.5").text
    browser.post(f"/topics/{topic}/produce", data={**fields, "key": "", "value": "", "value_as": "null"})
    last = broker.records(topic, partition=1)[-1]
    assert (last.key, last.value) == (None, None)


def field_values(page: str) -> dict[str, str]:
    """What a browser would send of the form for one message."""
    form = page.split("<form method", 2)[1] if "The value is" in page.split("<form method", 2)[1] else page
    found = dict(re.findall(r'<input name="(\w+)"[^>]* value="([^"]*)"', form))
    found |= dict(re.findall(r'<textarea name="(\w+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL))
    for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', form, re.DOTALL):
        chosen = re.findall(r'<option value="(\w*)" selected', options) or re.findall(r'<option value="(\w*)"', options)
        found[name] = chosen[0]
    return {name: html.unescape(value) for name, value in found.items()}


@pytest.mark.parametrize(
    "sent",
    [
        record(None, "tombstone"),
        record(None, None),
        record("", ""),
        record("\n first\n\n", "two\nlines"),
        record("\r\n", "\t"),
        record(b"\xff\x00", b"\x00"),
        record('{"a": 1}', '["k"]'),
        Record(
            "", 0, -1, 10**12, b"k", b"v", (("null", None), ("empty", b""), ("a=b", b"\xff"), ("", b"x"), ("t", b"1"))
        ),
    ],
)
def test_a_copy_is_what_was_copied(client: MakeClient, broker: Broker, sent: Record) -> None:
    name = f"copied-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, [sent])
    browser = client(allow_changes=True)
    form = browser.get(f"/topics/{name}/produce?like=0.0").text
    fields = {key: value.replace("\n", "\r\n") for key, value in field_values(form).items()}
    done = browser.post(f"/topics/{name}/produce", data={**fields, "token": token_of(form)})
    assert done.status_code == 303, done.text
    first, again = broker.records(name)
    assert (again.key, again.value, again.headers) == (first.key, first.value, first.headers)
    assert (again.key, again.value) == (sent.key, sent.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition": "7"},
        {"partition": "x"},
        {"headers": "=x"},
        {"value_as": "json"},
        {"value_as": "null"},
        {"key": "0", "key_as": "hex"},
        {"headers": "{"},
    ],
)
def test_a_bad_message_keeps_what_was_typed(client: MakeClient, topic: str, wrong: dict[str, str]) -> None:
    browser = client(allow_changes=True)
    fields = {"token": token_of(browser.get(f"/topics/{topic}/produce").text), "value": "typed", **wrong}
    response = browser.post(f"/topics/{topic}/produce", data=fields)
    assert response.status_code == 400
    assert "typed" in response.text
    assert "fix: " in response.text


def test_a_cluster_that_is_away_is_said_within_the_bound(client: MakeClient) -> None:
    browser = client(bootstrap="127.0.0.1:1")
    for path in ("messages", "messages/0/0", "follow", "download.jsonl"):
        assert browser.get(f"/topics/orders/{path}").status_code == 503


def test_messages_with_a_schema_are_bytes_with_a_note_while_the_registry_is_away(
    client: MakeClient, broker: Broker
) -> None:
    name = f"schema-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, [record(b"\0\0\0\0\x07data"), record("plain")])
    browser = client(registry="http://127.0.0.1:1")
    page = browser.get(f"/topics/{name}/messages").text
    assert "Some are not decoded: http://127.0.0.1:1/schemas/ids/7 cannot be read" in page
    assert "00 00 00 00 07 64" in page
    assert "plain" in page
    assert "Not decoded: " in browser.get(f"/topics/{name}/messages/0/0").text
    assert client().get(f"/topics/{name}/messages?as=schema").status_code == 400


def test_a_download_is_produced_again_as_it_was(client: MakeClient, broker: Broker, topic: str) -> None:
    broker.produce(topic, [record(b"\xff\x00", None, 1, 10**12 + 99), record(None, "gone", 0, 10**12 + 98)])
    copy = f"copy-{topic}"
    broker.create_topic(copy, 2)
    browser = client(allow_changes=True)
    lines = browser.get(f"/topics/{topic}/download.jsonl?start=oldest").text
    token = token_of(browser.get(f"/topics/{copy}/produce").text)
    done = browser.post(f"/topics/{copy}/produce-lines", data={"token": token, "lines": lines, "keep": "1"})
    assert "12 messages were produced" in done.text
    assert "partition 0, offsets 0 to 5" in done.text

    def of(name: str) -> list[tuple[object, ...]]:
        lines = browser.get(f"/topics/{name}/download.jsonl?start=oldest").text.splitlines()
        rows = [json.loads(line) for line in lines]
        return sorted((row["partition"], row["timestamp"], str(row["key"]), str(row["value"])) for row in rows)

    assert of(copy) == of(topic)


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ('{"value": "a"}\n\n{"value": NaN}', "line 3: value cannot be written as JSON"),
        ("[" * 50_000, "line 1: "),
        ('{"value": "\\ud800"}', "line 1: value has half of a surrogate pair"),
        (" \n", "there is no line"),
        ('{"value": "a", "partition": 9}', "has no partition 9"),
    ],
)
def test_a_bad_line_sends_nothing(client: MakeClient, broker: Broker, topic: str, lines: str, cause: str) -> None:
    browser = client(allow_changes=True)
    token = token_of(browser.get(f"/topics/{topic}/produce").text)
    response = browser.post(f"/topics/{topic}/produce-lines", data={"token": token, "lines": lines, "keep": "1"})
    assert response.status_code == 400
    assert cause in response.text
    assert len(broker.records(topic)) == 10
