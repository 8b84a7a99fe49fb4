"""Every list of the console is sorted by each of its columns: a walk over all pages, with something in each list."""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from starlette.testclient import TestClient

from kpybroker.client.schemas.subjects import New, Subjects
from kpybroker.console.app import make_app
from kpybroker.console.options import ConsoleOptions, parse_connect
from kpybroker.console.pages.routes import ROUTES
from kpybroker.console.queries.pages import Query, by_keys
from kpybroker.console.queries.storage import OF_BEHIND, OF_MOVES
from kpybroker.console.queries.transactions import OF_HANGING
from kpybroker.console.web.live import Live
from kpybroker.testing import Cluster, SchemaRegistry
from tests.console.changes.conftest import done
from tests.console.conftest import HERE, START_S, rows_of, settings_for
from tests.console.connect.fake import FakeConnect, serving
from tests.console.test_development import control_of

MARK: Final = uuid.uuid4().hex[:8]
FIRST, SECOND = f"sort-{MARK}-a", f"sort-{MARK}-b"
"""Topics and groups; of the second more of everything."""
PAGES: Final[Mapping[str, str]] = {
    "/": "/",
    "/topics": "/topics?sizes=1",
    "/topics/{name}": f"/topics/{SECOND}",
    "/topics/{name}/groups": f"/topics/{SECOND}/groups",
    "/topics/{name}/configuration": f"/topics/{SECOND}/configuration",
    "/groups": "/groups?lag=1",
    "/group": f"/group?id={SECOND}",
    "/transactions": f"/transactions?topic={SECOND}&hanging=1",
    "/schemas": "/schemas",
    "/schema": f"/schema?subject={SECOND}-value&look=1",
    "/connect": "/connect",
    "/connect/plugins": "/connect/plugins",
    "/connector": "/connector?name=billing",
    "/search": "/search?q=sort-",
    "/compare": f"/compare?a={FIRST}&b={SECOND}",
    "/health": "/health",
    "/brokers/{broker:int}": "/brokers/0",
    "/replication": "/replication",
    "/log-dirs": "/log-dirs",
    "/access": "/access",
    "/requests": "/requests",
    "/logs": "/logs",
    "/faults": "/faults",
    "/clients": "/clients",
    "/clients/{broker:int}/{instance}": "",
}
"""Routes with lists, and an address of each; that of a client is known later."""
OTHERS: Final = re.compile(r"/(state|clusters|health/now|login|logout|look|clock|change/.*|metrics/.*|group/lag.json)")
"""Routes without a list: fragments, forms, series of charts, and clusters, of which a console has a few."""
OF_RECORDS: Final = re.compile(r"/topics/\{name\}/(messages.*|follow|search|download.*|produce.*|rates.json)")
"""Records are in the order of their time or offset, which the page's form asks for."""

WHOLE: Final[Mapping[str, str]] = {
    "Configuration": "keys, by name: a page of one thing",
    "Settings of both": "those that differ are first",
    "Checks": "a few, always the same",
    "Requests": "the newest first, of all that are kept",
    "Log lines": "the newest first, of all that are kept",
    "Faults": "in the order in which the broker tries them",
    "Tasks": "numbered, of one connector",
    "By the name of the subject": "two at most",
    "Met in records": "the newest records of a few topics",
}
"""Tables that are not sorted, and why."""
COLUMNS: Final[Mapping[tuple[str, str], str]] = {
    ("Transactions", "Epoch"): "asked of the transactions that the page shows",
    ("Transactions", "Started"): "the same",
    ("Transactions", "Partitions"): "the same",
    ("Members", "Assigned"): "a list of partitions",
    ("Members", "Target"): "a list of partitions",
    ("Offsets", "Of"): "of a connector: texts of its plugin",
    ("Offsets", "Offset"): "of a connector: texts of its plugin",
    ("Topics", "Name"): "of a search: the name that fits best is first",
    ("Groups", "Name"): "the same",
    ("Subjects", "Name"): "the same",
    ("Connectors of etl", "Name"): "the same",
}
"""Columns that are not sorted, and why; those of buttons are called `Change`."""
CHANGE: Final = "Change"


class Header(NamedTuple):
    """Of a column: what its table is called, where it is, and the link that sorts by it."""

    table: str
    place: int
    title: str
    link: str
    is_marked: bool


def headers(page: str) -> list[Header]:
    found = []
    for table, head in re.findall(
        r'role="region" aria-label="([^"]*)"[^>]*><table>\s*<thead>(.*?)</thead>', page, re.S
    ):
        for index, cell in enumerate(re.findall(r"<th .*?</th>", head, re.DOTALL)):
            title = re.sub(r"<[^>]*>| [↑↓]", "", cell).strip()
            link = re.search(r'href="([^"]*)"', cell)
            marked = "aria-sort=" in cell
            found.append(Header(table, index, title, html.unescape(link[1]) if link else "", marked))
    return found


def follow(browser: TestClient, address: str, link: str) -> str:
    response = browser.get(address.partition("?")[0] + link)
    assert response.status_code == 200, (address, link, response.text)
    return str(response.text)


# --- something in each list


@pytest.fixture(scope="module")
def broker() -> Iterator[Cluster]:
    """Of two brokers, one of which has not all that the other leads."""
    config = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}
    with Cluster(2, config=config, start_timeout=START_S) as started:
        fill(started)
        stay_behind(started)
        yield started


def stay_behind(cluster: Cluster) -> None:
    """Followers of the second topic: one is out of the ISR, and two have not what is written from now on."""
    for number in (0, 1):
        leader = cluster.admin().list_topics(SECOND).topics[SECOND].partitions[number].leader
        cluster.lag_follower(SECOND, number, broker=1 - leader)
        producer = cluster.producer(acks=1, enable_idempotence=False)
        producer.produce(SECOND, "late", partition=number)
        producer.flush()
        cluster.shrink_isr(SECOND, number, to=[leader])


def fill(broker: Cluster) -> None:
    admin = broker.admin()
    for future in admin.create_topics([NewTopic(FIRST, 1, 1), NewTopic(SECOND, 3, 2)]).values():
        future.result()
    broker.produce(FIRST, ["x"])
    broker.produce(SECOND, [str(number) for number in range(9)])
    for name in (FIRST, SECOND):
        consumer = broker.consumer(name)
        consumer.commit(offsets=[TopicPartition(name, 0, 0), TopicPartition(SECOND, 1, 1)], asynchronous=False)
        consumer.close()
    literal, allow, any_name = ResourcePatternType.LITERAL, AclPermissionType.ALLOW, ResourceType.TOPIC
    for one in (
        AclBinding(any_name, FIRST, literal, "User:ada", "*", AclOperation.READ, allow),
        AclBinding(ResourceType.GROUP, SECOND, literal, "User:bob", "10.0.0.1", AclOperation.DESCRIBE, allow),
    ):
        admin.create_acls([one])[one].result()
    for name, count in (("ada", 4096), ("bob", 8192)):
        wanted = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, count)
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, wanted, b"secret")])[name].result()
    for name in (FIRST, SECOND):
        producer = broker.producer(transactional_id=name)
        producer.init_transactions(START_S)
        producer.begin_transaction()
        producer.produce(SECOND, "pending", partition=0)
        producer.flush()
        producer.abort_transaction(START_S)


@pytest.fixture(scope="module")
def registry(broker: Cluster) -> Iterator[str]:
    with SchemaRegistry(broker, start_timeout=START_S) as started:
        subjects = Subjects(started.url)
        for name in (FIRST, SECOND):
            subjects.register(f"{name}-value", New("AVRO", '"string"'))
        yield started.url


@pytest.fixture(scope="module")
def browser(broker: Cluster, registry: str) -> Iterator[TestClient]:
    """Of a console that knows everything."""
    with serving(FakeConnect()) as fake:
        fake.add("billing")
        fake.add("shipping", "org.example.BareSourceConnector", "RUNNING", "RUNNING", "FAILED")
        settings = settings_for(broker.bootstrap_servers)
        connects = (parse_connect(f"etl={fake.url}"),)
        options = ConsoleOptions(
            settings, allow_changes=True, registry=registry, connects=connects, control=control_of(broker)
        )
        with TestClient(make_app(options, Live(settings, START_S, START_S)), base_url=HERE) as made:
            for name, rate in (("ada", 1), ("bob", 2)):
                assert done(made, "quota-set", user=name, values=f"producer_byte_rate={rate}").status_code == 200
            yield made


@pytest.fixture(scope="module")
def addresses(broker: Cluster) -> Mapping[str, str]:
    """All, with that of a client; two have pushed metrics."""
    broker.subscribe_client_metrics(interval_ms=200)
    producers = [broker.producer(client_id=name, enable_metrics_push=True) for name in (FIRST, SECOND)]
    pushed = [broker.wait_client_metrics(name) for name in (FIRST, SECOND)]
    broker.unsubscribe_client_metrics()
    del producers
    return {**PAGES, "/clients/{broker:int}/{instance}": f"/clients/{pushed[0].broker}/{pushed[0].instance_id}"}


# --- the walk


def test_each_page_is_walked_or_has_no_list() -> None:
    paths = {
        route.path for route in ROUTES if not OTHERS.fullmatch(route.path) and not OF_RECORDS.fullmatch(route.path)
    }
    assert paths == set(PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_each_column_sorts_both_ways(browser: TestClient, addresses: Mapping[str, str], path: str) -> None:
    address = addresses[path]
    response = browser.get(address)
    assert response.status_code == 200
    found = headers(response.text)
    assert found
    for one in found:
        if one.link:
            sorts(browser, address, one)
        else:
            named = one.table in WHOLE or (one.table, one.title) in COLUMNS or one.title == CHANGE
            assert named, f"{path}: {one.table}, {one.title}"


def sorts(browser: TestClient, address: str, header: Header) -> None:
    """By its link, then by the link that the header has after that."""
    ways = []
    for _ in range(2):
        page = follow(browser, address, header.link)
        marked = [one for one in headers(page) if one.table == header.table and one.is_marked]
        assert [(one.title) for one in marked] == [header.title]
        (header,) = marked
        rows = rows_of(page, header.table)
        ways.append([row[header.place] for row in rows if len(row) > header.place])
    known = [[text for text, _ in groupby(cells) if text not in ("-", "")] for cells in ways]
    assert sorted(ways[0]) == sorted(ways[1])
    assert known[0] == known[1][::-1], (header.table, header.title)


@pytest.mark.parametrize("path", ["/replication", "/access", "/clients", "/connect", "/schemas", "/transactions"])
def test_a_column_that_is_none_is_bad_input(browser: TestClient, path: str) -> None:
    page = browser.get(path, params={"sort": "colour"})
    assert (page.status_code, "no column to sort by" in page.text) == (400, True)


@pytest.mark.parametrize(
    ("path", "tables"),
    [
        ("/access", {"ACLs": ["User:ada"], "Users": ["ada"], "Quotas": ["user ada"]}),
        ("/log-dirs", {"Replicas": [f"{FIRST}-0"]}),
        ("/schemas", {"Subjects": [f"{FIRST}-value"]}),
        ("/topics", {"Topics": [FIRST]}),
        ("/groups", {"Groups": [FIRST]}),
    ],
)
def test_a_filter_keeps_how_each_table_is_sorted(
    browser: TestClient, path: str, tables: Mapping[str, list[str]]
) -> None:
    text = "ADA" if path == "/access" else FIRST.upper()
    page = browser.get(path, params={"q": text, "sort": headers_of(browser, path)}).text
    assert {table: [row[0] for row in rows_of(page, table)] for table in tables} == tables
    assert f'<input type="hidden" name="sort" value="{headers_of(browser, path)}">' in page
    assert all("q=" in one.link for one in headers(page) if one.link)


def headers_of(browser: TestClient, path: str) -> str:
    """The first column of a page's list, as its address names it."""
    first = next(one for one in headers(browser.get(path).text) if one.link.startswith("?sort="))
    return first.link.partition("=")[2].partition("&")[0]


def test_two_tables_of_a_page_are_sorted_each_by_its_own_column(browser: TestClient) -> None:
    page = browser.get("/access", params={"sort": "-principal", "sort_users": "-user", "sort_quotas": "-value"}).text
    assert [row[0] for row in rows_of(page, "ACLs")] == ["User:bob", "User:ada"]
    assert [row[0] for row in rows_of(page, "Users")] == ["bob", "ada"]
    assert [row[0] for row in rows_of(page, "Quotas")] == ["user bob", "user ada"]
    link = next(one.link for one in headers(page) if (one.table, one.title) == ("Users", "Mechanism"))
    page = follow(browser, "/access", link)
    assert [row[0] for row in rows_of(page, "ACLs")] == ["User:bob", "User:ada"]


def test_partitions_are_sorted_before_they_are_cut_into_pages(browser: TestClient, broker: Cluster) -> None:
    name = f"many-{MARK}"
    broker.create_topic(name, 60)
    broker.produce(name, [("k", "v")])
    page = browser.get(f"/topics/{name}?sort=-partition").text
    assert rows_of(page, "Partitions")[0][0] == "59"
    assert 'href="?page=2&amp;sort=-partition"' in page
    (written,) = {row[0] for row in rows_of(browser.get(f"/topics/{name}?sort=-log_end_offset").text, "Partitions")[:1]}
    assert browser.get(f"/topics/{name}?sort=log_end_offset&page=2").text.count(f">{written}</th>") == 1


MOVE: Final = {"topic": "a", "partition": 1, "replicas": [1], "adding": [2], "removing": [1], "copied": 1, "size": 5}
HANGS: Final = {**dict.fromkeys(OF_HANGING, 1), "topic": "a"}


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (OF_MOVES, MOVE),
        (OF_BEHIND, {"topic": "a", "partition": 1, "broker": 1, "offset_lag": 1}),
        (by_keys(*OF_HANGING), HANGS),
    ],
    ids=["moves", "behind", "hanging"],
)
def test_what_a_well_cluster_has_none_of_is_sorted_too(columns: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    less = {"topic": "A", "replicas": [0], "adding": [0], "removing": [0]}
    other = {name: less.get(name, 0) for name in row}
    for column in columns:
        for sort, first in ((column, other), (f"-{column}", row)):
            assert Query("", {"sort": sort}).sorted("sort", [row, other], columns)[0] is first
