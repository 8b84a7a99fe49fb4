"""Several clusters in one console: two brokers, and one that is away."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kpybroker.console.app import make_app
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.web.clusters import ADDRESS
from kpybroker.testing import Broker
from tests.console.changes.conftest import fields_of, previewed
from tests.console.conftest import HERE, START_S, rows_of, settings_for, token_of

AWAY = "127.0.0.1:1"
OF_ALL = ("/static/", "/c/", "/login", "/logout", "/look")
LINK = re.compile(r' (?:href|action|src|hx-get|data-[a-z]+)="(/[^"]*)"')

MakeConsole = Callable[..., TestClient]


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    with Broker(topics={"payments": 1, "orders": 1}, start_timeout=START_S) as started:
        yield started


@pytest.fixture
def make(broker: Broker, other: Broker) -> Iterator[MakeConsole]:
    """A browser of a console of three clusters, `here`, `there` and `away`."""
    made: list[TestClient] = []

    def make(**options: Any) -> TestClient:
        places = {"here": broker.bootstrap_servers, "there": other.bootstrap_servers, "away": AWAY}
        clusters = [ConsoleOptions(settings_for(bootstrap), name=name, **options) for name, bootstrap in places.items()]
        app = make_app(clusters[0], clusters=clusters)
        made.append(TestClient(app, base_url=HERE, follow_redirects=False))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_front_page_lists_the_clusters_and_asks_each_by_itself(make: MakeConsole) -> None:
    browser = make()
    page = browser.get("/")
    assert page.status_code == 200
    assert [row[0] for row in rows_of(page.text, "Clusters")] == ["here", "there", "away"]
    assert "responds" in browser.get("/c/there/state").text
    assert "away" in browser.get("/c/away/state").text
    assert browser.get("/c/").status_code == 404


def test_an_address_has_its_cluster(make: MakeConsole) -> None:
    browser = make()
    assert [row[0] for row in rows_of(browser.get("/c/there/topics").text, "Topics")] == ["orders", "payments"]
    assert "payments" not in browser.get("/c/here/topics").text
    assert browser.get("/c/here/topics/payments").status_code == 404
    assert "<title>Cluster · there · kpybroker console</title>" in browser.get("/c/there").text
    chosen = browser.get("/topics/orders?page=1")
    assert chosen.status_code == 404
    assert 'href="/c/there/topics/orders?page=1"' in chosen.text
    for path in ("/c/none/topics", "/c/here/c/there/topics", "/clusters"):
        assert browser.get(path).status_code == 404, path


PAGES = (
    *("/", "/health", "/topics", "/topics/orders", "/topics/orders/messages", "/topics/orders/configuration"),
    *(
        "/topics/orders/produce",
        "/groups",
        "/group?id=readers",
        "/topics/orders/groups",
        "/transactions",
        "/replication",
        "/log-dirs",
        "/access",
        "/search?q=orders",
    ),
    *("/schemas", "/compare", "/brokers/0", "/change/topic-create", "/change/config?kind=topic&name=orders"),
    *("/change/topic-delete?topic=orders&preview=1", "/topics/none", "/topics?page=x"),
)


@pytest.mark.parametrize("path", PAGES)
def test_all_that_a_page_leads_to_is_in_its_cluster(make: MakeConsole, path: str) -> None:
    page = make(allow_changes=True).get(f"/c/here{path}").text
    links = LINK.findall(page)
    assert any(link.startswith("/c/here/") for link in links)
    assert [link for link in links if not link.startswith(OF_ALL)] == []
    away = {link for link in links if link.startswith("/c/") and not link.startswith("/c/here")}
    assert all(re.search(rf'<li><a href="{re.escape(link)}"', page) for link in away)


def test_a_text_that_looks_like_an_address_stays_as_it_is(make: MakeConsole, broker: Broker) -> None:
    text = ' href="/topics" '
    broker.produce("orders", [("k", text)])
    page = make().get("/c/here/topics/orders/messages").text
    assert "href=&#34;/topics&#34;" in page
    assert not ADDRESS.search(page)


def test_a_form_of_one_cluster_changes_no_other(
    make: MakeConsole, other: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kpybroker.console.changes")
    browser = make(allow_changes=True)
    page = browser.get("/c/here/change/topic-delete?topic=orders&preview=1").text
    assert 'action="/c/here/change/topic-delete"' in page
    form = {**fields_of(page), "typed_again": "orders"}
    refused = browser.post("/c/there/change/topic-delete", data=form)
    assert refused.status_code == 403
    of_all = {**form, "token": token_of(page.split('action="/look"')[1])}
    there = fields_of(browser.get("/c/there/change/topic-delete?topic=orders&preview=1").text)
    mixed = {**form, "token": there["token"]}
    assert browser.post("/c/there/change/topic-delete", data=mixed).status_code == 400
    assert browser.post("/c/there/change/topic-delete", data=of_all).status_code == 403
    assert browser.post("/change/topic-delete", data=form).status_code == 404
    own = {"key": "k", "key_as": "text", "value": "v", "value_as": "text", "headers": "", "partition": ""}
    token = form["token"]
    assert browser.post("/c/there/topics/orders/produce", data={**own, "token": token}).status_code == 403
    assert "orders" in browser.get("/c/there/topics").text
    assert "orders" in browser.get("/c/here/topics").text
    sent = browser.post("/c/there/topics/payments/produce", data={**own, "token": there["token"]})
    assert (sent.status_code, sent.headers["location"]) == (303, "/c/there/topics/payments/messages/0/0")
    assert any("path=/c/there/topics/payments/produce" in line for line in caplog.messages)


def test_a_change_of_one_cluster_is_logged_with_its_name(
    make: MakeConsole, other: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kpybroker.console.changes")
    browser = make(allow_changes=True)
    values = {"topic": "made-there", "partitions": "1", "replicas": "1", "configs": ""}
    page = browser.get("/c/there/change/topic-create", params={**values, "preview": "1"}).text
    done = browser.post("/c/there/change/topic-create", data={**values, **fields_of(page)})
    assert done.status_code == 200
    assert "made-there" in browser.get("/c/there/topics").text
    assert "made-there" not in browser.get("/c/here/topics").text
    assert f"-b {other.bootstrap_servers} made-there" in done.text
    assert '<a href="/c/there/topics/made-there">See what it is now</a>' in done.text
    assert any(line.startswith("Change key=topic-create cluster=there ") for line in caplog.messages)


def test_a_cluster_that_is_away_takes_no_other_away(make: MakeConsole) -> None:
    browser = make()
    assert browser.get("/c/away/topics").status_code == 503
    assert browser.get("/c/here/topics").status_code == 200
    assert browser.get("/").status_code == 200


def test_how_pages_look_is_chosen_for_all(make: MakeConsole) -> None:
    browser = make()
    page = browser.get("/c/there/topics").text
    token = re.findall(r'action="/look".*?name="token" value="([^"]+)"', page, re.DOTALL)[0]
    assert 'name="next" value="/c/there/topics"' in page
    kept = browser.post("/look", data={"token": token, "theme": "dark", "next": "/c/there/topics"})
    assert (kept.status_code, kept.headers["location"]) == (303, "/c/there/topics")


def test_the_record_before_and_the_one_after_are_of_the_same_cluster(make: MakeConsole, other: Broker) -> None:
    """By the links of a record's page; and what its list opens next to itself is the page of the same cluster."""
    other.create_topic("of-there", 1)
    other.produce("of-there", [("a", "1"), ("b", "2")])
    browser, place = make(), "/c/there/topics/of-there/messages"
    page = browser.get(f"{place}/0/0").text
    assert f'href="{place}/0/0?go=next"' in page
    assert browser.get(f"{place}/0/0?go=next").headers["location"] == f"{place}/0/1"
    assert browser.get(f"{place}/0/1?go=previous").headers["location"] == f"{place}/0/0"
    edge = browser.get(f"{place}/0/1?go=next")
    assert (edge.status_code, "There is no message after this one" in edge.text) == (200, True)
    rows = re.findall(r'<td class="number"><a href="([^"]*)">', browser.get(place).text)
    assert rows == [f"{place}/0/1", f"{place}/0/0"]
    assert browser.get("/c/here/topics/of-there/messages/0/0?go=next").status_code == 404


def test_a_login_is_of_all_and_leads_on(make: MakeConsole) -> None:
    browser = make(password="sesame")
    away = browser.get("/c/there/topics")
    assert away.headers["location"] == "/login?next=/c/there/topics"
    token = token_of(browser.get(away.headers["location"]).text)
    entered = browser.post("/login", data={"token": token, "password": "sesame", "next": "/c/there/topics"})
    assert entered.headers["location"] == "/c/there/topics"
    assert browser.get("/c/there/topics").status_code == browser.get("/c/here/topics").status_code == 200


def test_search_and_the_switch_are_of_the_cluster_that_is_shown(make: MakeConsole) -> None:
    browser = make()
    assert "/c/there/topics/payments" in browser.get("/c/there/search?q=pay").text
    assert "payments" not in browser.get("/c/here/search?q=pay").text.split('id="live"')[1]
    page = browser.get("/c/here/topics/orders").text
    assert '<a href="/c/there/topics">' in page
    assert '<a href="/c/here/topics" aria-current="true">' in page


def test_one_cluster_has_the_addresses_that_it_had(broker: Broker) -> None:
    with TestClient(make_app(ConsoleOptions(settings_for(broker.bootstrap_servers))), base_url=HERE) as browser:
        assert "<title>Cluster · kpybroker console</title>" in browser.get("/").text
        page = browser.get("/topics")
        assert "/c/" not in page.text
        assert browser.get("/c/here/topics").status_code == 404
        assert browser.get("/clusters").status_code == 404
        assert previewed(browser, "topic-delete", topic="orders").status_code == 200
