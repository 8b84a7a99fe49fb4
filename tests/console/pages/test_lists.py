"""Lists sorted by a column, what is found by its name, two topics compared, and what one sees of a lag's trend."""

from __future__ import annotations

import html
import time
import uuid

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from kpybroker.console.queries.health.memory import trend_of
from kpybroker.console.queries.pages import sorted_by
from kpybroker.console.queries.samples import Point, Samples
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient, facts_of, rows_of


@pytest.fixture(scope="module")
def names(broker: Broker) -> tuple[str, str]:
    """Two topics and a group of each; of the second topic more partitions, records and lag."""
    mark = uuid.uuid4().hex[:8]
    first, second = f"list-{mark}-a", f"list-{mark}-b"
    admin = broker.admin()
    new = [NewTopic(first, 1), NewTopic(second, 3, config={"retention.ms": "3600000"})]
    for future in admin.create_topics(new).values():
        future.result()
    broker.produce(first, ["x"])
    broker.produce(second, [str(number) for number in range(9)])
    for name in (first, second):
        consumer = broker.consumer(name)
        consumer.commit(offsets=[TopicPartition(name, 0, 0)], asynchronous=False)
        consumer.close()
    return first, second


def order(page: str, label: str) -> list[str]:
    return [row[0] for row in rows_of(page, label)]


@pytest.mark.parametrize("column", ["name", "partitions", "records", "size"])
def test_topics_are_sorted_both_ways(client: MakeClient, names: tuple[str, str], column: str) -> None:
    browser, query = client(), {"q": names[0][:-1]}
    assert order(browser.get("/topics", params={**query, "sort": column}).text, "Topics") == list(names)
    page = browser.get("/topics", params={**query, "sort": f"-{column}"}).text
    assert order(page, "Topics") == list(names)[::-1]
    assert page.count('aria-sort="descending"') == 1
    assert f'href="?sort={column}&amp;q=' in page


@pytest.mark.parametrize("column", ["group", "lag"])
def test_groups_are_sorted_both_ways(client: MakeClient, names: tuple[str, str], column: str) -> None:
    browser, query = client(), {"q": names[0][:-1], "lag": "1"}
    assert order(browser.get("/groups", params={**query, "sort": column}).text, "Groups") == list(names)
    assert order(browser.get("/groups", params={**query, "sort": f"-{column}"}).text, "Groups") == list(names)[::-1]


@pytest.mark.parametrize("path", ["/topics", "/groups"])
def test_a_column_that_is_none_is_an_error_of_the_reader(client: MakeClient, path: str) -> None:
    page = client().get(path, params={"sort": "colour"})
    assert page.status_code == 400
    assert "no column to sort by" in page.text


def test_what_is_not_known_comes_last() -> None:
    rows = [("a", None), ("b", 2), ("c", 1)]
    assert [one[0] for one in sorted_by(rows, "n", {"n": lambda row: row[1]})] == ["c", "b", "a"]
    assert [one[0] for one in sorted_by(rows, "-n", {"n": lambda row: row[1]})] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("values", "trend"), [((1, 2, 3), "grows"), ((3, 2, 1), "falls"), ((2, 2, 2), "steady"), ((1, 2), ""), ((), "")]
)
def test_a_trend(values: tuple[int, ...], trend: str) -> None:
    assert trend_of([Point(number * 10.0, value) for number, value in enumerate(values)]) == trend


def test_the_list_of_groups_has_the_lag_and_its_trend(client: MakeClient, names: tuple[str, str]) -> None:
    browser = client()
    first = browser.get("/groups", params={"q": names[1]}).text
    assert 'hx-trigger="load, every 5s"' in first  # the lag is asked for once the page is shown
    samples: Samples = browser.app.state.console.samples  # type: ignore[attr-defined]
    for before_s in (40, 30, 20, 10):
        samples.add(f"lag/{names[1]}", 0, time.time() - before_s)
    (row,) = rows_of(browser.get("/groups", params={"q": names[1], "lag": "1"}).text, "Groups")
    for sort, expected in (("-trend", names[1]), ("trend", names[1]), ("-rate", names[0])):
        path, label = ("/topics", "Topics") if "rate" in sort else ("/groups", "Groups")
        if "rate" in sort:
            for at, value in ((20, 0), (0, 50)):
                samples.add(f"topic/{names[0]}", value, time.time() - at)
        found = browser.get(path, params={"q": names[1][:-1], "sort": sort}).text
        assert order(found, label)[0] == expected, "what is not known comes last"
    assert row[5].startswith(("1", "2", "3", "4", "5", "6", "7", "8", "9"))
    assert row[6] == "grows"


def test_names_are_found_the_same_name_first(client: MakeClient, names: tuple[str, str]) -> None:
    page = client().get("/search", params={"q": names[1].upper()}).text
    assert order(page, "Topics") == [names[1]]
    assert f'href="/topics/{names[1]}"' in page
    assert f'href="/group?id={names[1]}"' in page
    assert order(client().get("/search", params={"q": "no such name"}).text, "Groups") == ["none has this in its name"]


def test_two_topics_are_compared(client: MakeClient, names: tuple[str, str]) -> None:
    page = client().get("/compare", params={"a": names[0], "b": names[1]}).text
    first = rows_of(page, "Settings of both")[0]
    assert first[0] == "retention.ms"
    assert "3600000 1 hour" in html.unescape(first[2])
    assert first[3] == "differs"
    assert facts_of(page)["Settings that differ"] == "1"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in client().get("/compare", params={"a": names[0], "b": "not-there"}).text


def test_a_topic_has_its_consumers_and_its_producers(client: MakeClient, broker: Broker) -> None:
    name = f"made-by-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    producer = broker.producer(enable_idempotence=True)
    producer.produce(name, b"x")
    producer.flush()
    page = client().get(f"/topics/{name}/groups").text
    assert len(rows_of(page, "Producers")) == 1
    assert rows_of(page, "Producers")[0][3] == "0"
