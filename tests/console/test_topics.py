"""The pages of the cluster and its topics, and what they show when the cluster is away."""

from __future__ import annotations

import pytest

from kpybroker.console.web.live import CLIENT_ID
from kpybroker.testing import Broker
from tests.console.conftest import MakeClient


def test_the_cluster_page_names_the_broker_and_the_controller(client: MakeClient, broker: Broker) -> None:
    page = client().get("/").text
    assert broker.bootstrap_servers in page
    assert "controller</span>" in page
    assert "not reachable" not in page


def test_topics_are_filtered_by_a_part_of_their_name(client: MakeClient, broker: Broker) -> None:
    broker.create_topic("payments", 1)
    browser = client()
    assert {name in browser.get("/topics").text for name in ("orders", "payments")} == {True}
    page = browser.get("/topics?q=ORD").text
    assert "/topics/orders" in page
    assert "/topics/payments" not in page
    assert "/topics/" not in browser.get("/topics?problems=1").text.replace("/topics/__", "")


def test_sizes_are_asked_for_after_the_page_is_shown(client: MakeClient, broker: Broker) -> None:
    broker.create_topic("sized", 1)
    broker.produce("sized", ["x" * 3000])
    browser = client()
    first = browser.get("/topics?q=sized").text
    assert 'hx-get="/topics?q=sized&amp;sizes=1" hx-trigger="load, every 5s"' in first
    assert "KiB" not in first
    then = browser.get("/topics?q=sized&sizes=1").text
    assert "KiB" in then
    assert 'hx-get="/topics?q=sized&amp;sizes=1" hx-trigger="every 5s"' in then


def test_a_topic_shows_its_partitions_and_the_source_and_meaning_of_its_settings(client: MakeClient) -> None:
    browser = client()
    page = browser.get("/topics/orders").text
    assert page.count('<th scope="row" class="number">') == 3
    settings = browser.get("/topics/orders/configuration").text
    assert "retention.ms" in settings
    assert "default" in settings


def test_a_topic_that_is_not_there_is_not_created(client: MakeClient, broker: Broker) -> None:
    page = client().get("/topics/nothing-here")
    assert page.status_code == 404
    assert "asks again" not in page.text
    assert "there is no topic nothing-here" in page.text
    assert "nothing-here" not in broker.topics()


def test_a_name_is_escaped(client: MakeClient) -> None:
    page = client().get("/topics/%3Cscript%3Ealert(1)%3C%2Fscript%3E").text
    assert "<script>alert" not in page
    page = client().get("/topics?q=%22%3E%3Cscript%3E").text
    assert "&#34;&gt;&lt;script&gt;" in page
    assert '"><script>' not in page


def test_a_number_that_is_none_is_an_error_of_the_reader(client: MakeClient) -> None:
    assert client().get("/topics?page=x").status_code == 400
    assert client().get("/topics?page=" + "9" * 30).status_code == 400


def test_a_cluster_that_is_away_is_said_with_a_fix_and_asked_again(client: MakeClient) -> None:
    browser = client(bootstrap="127.0.0.1:1")
    for path in ("/", "/topics", "/topics/orders"):
        page = browser.get(path)
        assert page.status_code == 503
        assert "fix: " in page.text
        assert f'hx-get="{path}"' in page.text


@pytest.mark.parametrize("path", ["/topics/orders", "/topics/orders/messages", "/topics/orders/rates.json"])
def test_a_page_of_a_topic_asks_for_no_other_topic(client: MakeClient, broker: Broker, path: str) -> None:
    """A cluster may have ten thousand partitions."""
    browser = client()
    broker.clear_requests()
    assert browser.get(path).status_code == 200
    made = [one.request for one in broker.requests("Metadata", client_id=CLIENT_ID)]
    asked = [[topic["name"] for topic in one["topics"]] for one in made if one is not None]
    assert ["orders"] in asked
    assert {name for names in asked for name in names} == {"orders"}


@pytest.mark.parametrize("name", ["no-such-topic", "not%20legal", "." * 3])
def test_a_topic_that_there_is_not_is_said_to_be_none(client: MakeClient, name: str) -> None:
    page = client().get(f"/topics/{name}")
    assert page.status_code == 404
    assert "there is no topic" in page.text
