"""The pages of Kafka Connect: connectors, one of them, plugins; and a Connect that is away or is none."""

from __future__ import annotations

import logging

import pytest
from starlette.testclient import TestClient

from kpybroker.console.options import parse_connect
from kpybroker.console.queries.connect import rest
from tests.console.conftest import MakeClient, facts_of, rows_of, text_of
from tests.console.connect.conftest import CODE
from tests.console.connect.fake import BARE, TRACE, WORKER, FakeConnect

BILLING = {"connect": "etl", "name": "billing"}


def test_connectors_with_a_failure_are_listed_first(browser: TestClient) -> None:
    page = browser.get("/connect")
    assert page.status_code == 200
    assert [row[:6] for row in rows_of(page.text, "Connectors of etl")] == [
        ["shipping", "RUNNING", "sink", "2", "1", "1"],
        ["billing", "RUNNING", "sink", "1", "1", "0"],
    ]
    assert [row[0] for row in rows_of(browser.get("/connect?q=BILL").text, "Connectors of etl")] == ["billing"]
    assert 'href="/connect" aria-current="page"' in browser.get("/connector", params=BILLING).text


def test_a_connector_shows_its_tasks_their_traces_its_offsets_and_what_its_keys_mean(browser: TestClient) -> None:
    page = browser.get("/connector", params={"connect": "etl", "name": "shipping"}).text
    assert facts_of(page)["Worker"] == WORKER
    assert [row[:3] for row in rows_of(page, "Tasks")] == [["0", "RUNNING", WORKER], ["1", "FAILED", WORKER]]
    assert TRACE.replace("\t", "    ") in page
    assert rows_of(page, "Offsets") == [["kafka_topic=orders, kafka_partition=0", "kafka_offset=7"]]
    assert ["table.url", "http://tables", "Where the tables are."] in rows_of(page, "Configuration")
    assert '<a href="/topics/orders">orders</a>' in page
    assert browser.get("/connector?connect=etl&name=none").status_code == 404
    assert browser.get("/connector?connect=other&name=billing").status_code == 404


def test_no_page_has_a_secret(browser: TestClient, fake: FakeConnect) -> None:
    """Neither by its type, nor by its name, nor by its value, nor in a trace; nor where a plugin says nothing."""
    hidden = {"table_code": CODE, "sasl_jaas_config": "jaas1", "db_password": "pw2", "the_secret": "se3"}
    hidden |= {
        "db_url": "jdbc:x://user:url4@host/",
        "transforms_mask_salt": "salt5",
        "value_converter_anything": "any6",
    }
    fake.add("billing", table_url="http://tables", transforms="mask", transforms_mask_type="org.example.Mask", **hidden)
    fake.add("bare", BARE, "FAILED", "FAILED", anything="any7")
    fake.states["billing"] = ["RUNNING", "FAILED"]
    for name, own in (("billing", CODE), ("bare", "any7")):
        fake.trace = f"cannot log in with {own}"
        page = browser.get("/connector", params={"connect": "etl", "name": name}).text
        form = browser.get("/change/connector-config", params={"connect": "etl", "name": name}).text
        for text in (*hidden.values(), "any7"):
            assert text not in page + form
    rows = {row[0]: row[1] for row in rows_of(browser.get("/connector", params=BILLING).text, "Configuration")}
    assert rows["table.code"] == rows["transforms.mask.salt"] == "(secret)"
    assert rows["transforms.mask.type"] == "org.example.Mask"


def test_the_login_of_an_address_is_sent_and_never_shown(
    client: MakeClient, fake: FakeConnect, caplog: pytest.LogCaptureFixture
) -> None:
    fake.login = "luis:p@ss"
    caplog.set_level(logging.DEBUG)
    there = fake.url.replace("http://", "http://luis:p%40ss@")
    browser = client(allow_changes=True, connects=(parse_connect(there),))
    page = browser.get("/connect")
    assert "billing" in page.text
    form = browser.get("/change/connector-pause?name=billing&preview=1").text
    wrong = client(connects=(parse_connect(fake.url.replace("http://", "http://luis:other@")),)).get("/connect").text
    assert "responds with status 401" in wrong
    for text in (page.text, form, wrong, caplog.text):
        assert "luis" not in text, "no token of hexadecimal digits has this by chance"
        assert "p@ss" not in text
        assert "p%40ss" not in text


@pytest.mark.parametrize(
    "mode",
    ["<html>welcome</html>", '{"version": 1}', '{"error_code": 500}', '{"x": {"status": {"tasks": [{}]}}}', "{"],
)
def test_what_is_no_connect_is_said_where_it_would_be(browser: TestClient, fake: FakeConnect, mode: str) -> None:
    fake.mode = mode
    page = browser.get("/connect")
    assert page.status_code == 200
    if "version" not in mode and "error_code" not in mode:
        assert "is no Kafka Connect&#39;s REST" in page.text
    assert browser.get("/connector", params=BILLING).status_code == 503
    assert browser.get("/change/connector-pause", params={**BILLING, "preview": "1"}).status_code == 503
    assert browser.get("/topics").status_code == 200


def test_one_that_is_down_takes_no_other_away(client: MakeClient, fake: FakeConnect) -> None:
    down = parse_connect("down=http://127.0.0.1:1")
    browser = client(connects=(down, parse_connect(f"etl={fake.url}")))
    page = browser.get("/connect").text
    assert "127.0.0.1:1/ does not respond" in text_of(page)
    assert len(rows_of(page, "Connectors of etl")) == 2
    assert browser.get("/connector?connect=down&name=x").status_code == 503
    assert "Change" not in str(rows_of(browser.get("/connector", params=BILLING).text, "Tasks"))


def test_one_that_is_slow_is_given_up(client: MakeClient, fake: FakeConnect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "STEP_S_MAX", 0.2)
    fake.mode = "slow"
    browser = client(connects=(parse_connect(f"etl={fake.url}"),))
    assert "does not respond: " in browser.get("/connect").text
    page = browser.get("/connector", params=BILLING)
    assert page.status_code == 503
    assert browser.get("/topics").status_code == 200


def test_without_a_connect_there_is_none_of_it(client: MakeClient) -> None:
    browser = client(allow_changes=True)
    assert 'href="/connect"' not in browser.get("/topics").text
    assert "--connect URL" in browser.get("/connect").text
    page = browser.get("/change/connector-pause?name=x&preview=1")
    assert page.status_code == 503
    assert "this console knows no Kafka Connect" in page.text


def test_connectors_are_found_by_name(client: MakeClient, fake: FakeConnect) -> None:
    """Ctrl-K leads there. One that is away is a note, and takes away no topic that was found."""
    fake.add("bill and <co>", table_url="http://tables")
    down = parse_connect("down=http://127.0.0.1:1")
    page = client(connects=(parse_connect(f"etl={fake.url}"), down)).get("/search?q=BILL").text
    assert [row[0] for row in rows_of(page, "Connectors of etl")] == ["bill and &lt;co&gt;", "billing"]
    assert 'href="/connector?connect=etl&amp;name=bill%20and%20%3Cco%3E"' in page
    assert "connectors of down:" in page
    orders = client(connects=(down,)).get("/search?q=orders").text
    assert [row[0] for row in rows_of(orders, "Topics")] == ["orders"]
    assert client(bootstrap="127.0.0.1:1", connects=(down,)).get("/search?q=orders").status_code == 503
