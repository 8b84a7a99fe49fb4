"""The pages of a development broker: requests, faults, the clock."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from kpybroker.client.connect.errors import CommandError
from kpybroker.console.queries.control import Switch, body, parse_address, rule
from kpybroker.testing import Broker, Cluster
from tests.console.conftest import MakeClient, token_of


def control_of(broker: Broker | Cluster) -> str:
    host, port = broker.channel.address
    return f"http://{host}:{port}"


@pytest.fixture
def browser(client: MakeClient, broker: Broker) -> TestClient:
    return client(control=control_of(broker), allow_changes=True)


def test_without_a_control_channel_there_are_no_such_pages(client: MakeClient) -> None:
    browser = client()
    assert 'href="/faults"' not in browser.get("/login").text
    for path in ("/requests", "/faults", "/clock"):
        assert browser.get(path).status_code == 404


def test_requests_are_decoded_and_filtered(browser: TestClient) -> None:
    browser.get("/topics")
    page = browser.get("/requests?api=Metadata").text
    assert '<th scope="row" class="nowrap">Metadata' in page
    assert "&#34;topics&#34;" in page
    assert '<th scope="row" class="nowrap">ApiVersions' not in page
    assert "no such request" in browser.get("/requests?client_id=someone-else").text
    assert browser.get("/requests?api=NoSuchApi").status_code == 400


def test_a_fault_is_added_acts_and_is_removed(browser: TestClient, broker: Broker) -> None:
    token = token_of(browser.get("/faults").text)
    fields = {"token": token, "do": "add", "api": "DescribeAcls", "act": "observe", "client_id": "<c>"}
    assert browser.post("/faults", data=fields).headers["location"] == "/faults"
    page = browser.get("/faults").text
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    (fault,) = broker.channel.call("faults")
    assert fault["match"] == {"api": "DescribeAcls", "client_id": "<c>"}
    browser.post("/faults", data={"token": token, "do": "remove", "id": str(fault["id"])})
    assert broker.channel.call("faults") == []


def test_faults_are_loaded_from_a_text_and_all_removed(browser: TestClient, broker: Broker) -> None:
    token = token_of(browser.get("/faults").text)
    text = '[{"match": {"api": "DescribeAcls"}, "act": {"observe": true}}]'
    browser.post("/faults", data={"token": token, "do": "load", "text": text})
    assert len(broker.channel.call("faults")) == 1
    browser.post("/faults", data={"token": token, "do": "reset"})
    assert broker.channel.call("faults") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"do": "load", "text": "["},
        {"do": "add", "api": "NoSuchApi", "act": "observe"},
        {"do": "add", "api": "Produce", "act": "explode"},
        {"do": "add", "api": "Produce", "act": "delay_ms", "value": "soon"},
        {"do": "remove", "id": "99999"},
    ],
)
def test_a_bad_fault_is_said_on_the_page(browser: TestClient, fields: dict[str, str]) -> None:
    response = browser.post("/faults", data={"token": token_of(browser.get("/faults").text), **fields})
    assert response.status_code == 400
    assert "fix: " in response.text


def test_the_clock_moves_forward(browser: TestClient, broker: Broker) -> None:
    before = broker.channel.call("clock")["ahead_ms"]
    token = token_of(browser.get("/clock").text)
    assert browser.post("/clock", data={"token": token, "number": "2", "unit": "minutes"}).status_code == 303
    assert broker.channel.call("clock")["ahead_ms"] - before > 60_000  # the machine's own clock went on
    for bad in ({"number": "x", "unit": "minutes"}, {"number": "1", "unit": "years"}, {"number": "-1", "unit": "days"}):
        assert browser.post("/clock", data={"token": token, **bad}).status_code == 400


def test_a_reader_sees_and_changes_nothing(client: MakeClient, broker: Broker) -> None:
    browser = client(control=control_of(broker))
    for path in ("/faults", "/clock"):
        page = browser.get(path).text
        assert "read-only" in page
        assert "<button>A" not in page


def test_a_channel_that_is_away_is_said_with_a_fix(client: MakeClient) -> None:
    page = client(control="http://127.0.0.1:1").get("/requests")
    assert page.status_code == 503
    assert "--control" in page.text


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        (
            Switch("Produce", "error", "INVALID_RECORD", "orders"),
            {"match": {"api": "Produce", "topic": "orders"}, "act": {"error": "INVALID_RECORD"}},
        ),
        (
            Switch("Fetch", "delay_ms", "100", times="2"),
            {"match": {"api": "Fetch"}, "act": {"delay_ms": 100}, "trigger": {"times": 2}},
        ),
        (Switch("Fetch", "hold", "ignored"), {"match": {"api": "Fetch"}, "act": {"hold": True}}),
    ],
)
def test_a_switch_is_a_rule(switch: Switch, expected: object) -> None:
    assert rule(switch) == expected


def test_bodies_are_cut_and_have_no_control_characters() -> None:
    assert body(None) == "-"
    assert len(body(["x" * 100_000])) < 9000
    assert "\u202e" not in body({"a": "\u202e"})


@pytest.mark.parametrize(
    "text", ["", "x", "https://127.0.0.1:1", "http://127.0.0.1", "http://127.0.0.1:99999", "http://h:1/x"]
)
def test_an_address_that_is_none(text: str) -> None:
    with pytest.raises(CommandError):
        parse_address(text)


def test_addresses() -> None:
    assert parse_address("http://127.0.0.1:9099") == parse_address("127.0.0.1:9099") == ("127.0.0.1", 9099)


def test_log_lines_are_filtered_and_a_request_leads_to_its_own(browser: TestClient, broker: Broker) -> None:
    page = browser.get("/logs?logger=kafka.server&text=STARTED").text
    assert "[KafkaServer id=0] started" in page
    assert "no such line" in browser.get("/logs?level=FATAL").text
    assert "no such line" in browser.get("/logs?logger=kafka.serv").text
    assert browser.get("/logs?level=LOUD").status_code == 400
    browser.get("/topics")
    link = browser.get("/requests?api=Metadata").text.split('href="/logs?', 1)[1].split('"', 1)[0]
    assert link.startswith("correlation=")
    assert link.endswith("client_id=kpybroker-console")
    assert browser.get(f"/logs?{link.replace('&amp;', '&')}").status_code == 200


def test_for_other_brokers_the_page_says_why_there_is_no_log(client: MakeClient) -> None:
    page = client().get("/logs")
    assert page.status_code == 200
    assert "--control URL" in page.text
