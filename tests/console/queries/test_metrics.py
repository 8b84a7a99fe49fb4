"""What pages read of `/metrics`: every spelling, a bound on what is read, and nothing secret in an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kpybroker.client.connect.errors import CommandError, hide
from kpybroker.client.schemas import http
from kpybroker.console.queries.outside import metrics
from kpybroker.console.queries.outside.metrics import Metrics, Value, base_name, parsed
from kpybroker.console.queries.samples import Samples

IN = "kafka_server_brokertopicmetrics_messagesin"
PAGE = f"""# TYPE {IN}_total counter
{IN}_total 10
{IN}_total{{topic="or\\"ders"}} 4
kafka_server_replicafetchermanager_maxlag{{clientId="Replica"}} 3
jvm_threads 7
"""


@pytest.mark.parametrize("name", [f"{IN}_total", f"{IN}persec_total", f"{IN}persec", IN])
def test_every_spelling_is_one_name(name: str) -> None:
    assert base_name(name) == IN


def test_labels_are_read_as_they_were_written() -> None:
    assert parsed([f'{IN}_total{{topic="or\\"ders"}} 4', f"{IN}_total NaN"]) == [Value(IN, 'or"ders', 4)]


@pytest.fixture
def served() -> Iterator[dict[str, str]]:
    """Pages by path, at `served["at"]`."""
    pages = {"/metrics": PAGE, "/other": "<html>\n", "/broken": f"{IN} x{{\n"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = pages.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.end_headers()
            self.wfile.write((found or "").encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pages["at"] = f"http://127.0.0.1:{server.server_port}"
    yield pages
    server.shutdown()
    thread.join()
    server.server_close()


def test_brokers_are_added_up_and_the_furthest_behind_is_the_largest(
    served: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_S", 0)
    now = [0.0]
    url = f"{served['at']}/metrics"
    read = Metrics(lambda: [url, url], Samples(lambda: now[0]))
    first = {one.key: one.number for one in read.now("cluster")}
    assert first == {"messages": None, "bytes-in": None, "bytes-out": None}
    served["/metrics"] = PAGE.replace(" 10\n", " 30\n").replace(" 4\n", " 9\n")
    now[0] = 10.0
    assert {one.key: one.number for one in read.now("cluster")}["messages"] == 4.0
    assert {one.key: one.number for one in read.now("replication")}["max-lag"] == 3.0
    assert read.points("cluster", "messages") == [(10.0, 4.0)]
    read.now("topic", 'or"ders')
    assert read.points("topic", "messages", "nothing") == []


def test_a_broker_that_comes_goes_or_begins_again_is_no_leap(
    served: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_S", 0)
    now = [0.0]
    urls = [f"{served['at']}/metrics"]
    served["/second"] = f"{IN}_total 1000000\n"
    read = Metrics(lambda: urls, Samples(lambda: now[0]))
    for at, first, second in (
        (0, 10, None),
        (10, 20, None),
        (20, 30, 10**6),
        (30, 40, 10**6 + 10),
        (40, 5, 10**6 + 20),
    ):
        now[0] = float(at)
        served["/metrics"] = f"{IN}_total {first}\n"
        served["/second"] = f"{IN}_total {second}\n"
        urls[1:] = [] if second is None else [f"{served['at']}/second"]
        read.now("cluster")
    assert read.points("cluster", "messages") == [(10.0, 1.0), (20.0, 1.0), (30.0, 2.0), (40.0, 1.0)]


def test_one_reading_serves_all_viewers(served: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monotonic = [100.0]
    monkeypatch.setattr("kpybroker.console.queries.outside.metrics.time.monotonic", lambda: monotonic[0])
    read = Metrics(lambda: [f"{served['at']}/metrics"], Samples(lambda: now[0]))
    for step in range(60):
        served["/metrics"] = f"{IN}_total {15 * step}\n"
        now[0], monotonic[0] = float(step), 100.0 + step
        for viewer in range(5):  # between two readings they see the same number at a later time
            now[0] = step + viewer * 0.19
            read.now("cluster")
    rates = [point.value for point in read.points("cluster", "messages")]
    assert len(rates) > 20
    assert all(rate is not None and abs(rate - 15.0) < 0.01 for rate in rates)


@pytest.mark.parametrize(
    ("path", "cause"),
    [("/nothing", "status 404"), ("/other", "no metrics of Kafka"), ("/broken", "has no metrics")],
)
def test_a_page_that_has_none_is_an_error_and_what_was_known_stays(
    served: dict[str, str], path: str, cause: str
) -> None:
    read = Metrics(lambda: [served["at"] + path], Samples())
    with pytest.raises(CommandError, match=cause):
        read.now("cluster")
    assert read.points("cluster", "messages") == []


def test_what_is_read_is_bounded(served: dict[str, str]) -> None:
    with pytest.raises(CommandError, match="more than 50 bytes"):
        list(http.lines(http.new_client(), f"{served['at']}/metrics", 50))


def test_a_password_in_an_address_is_never_shown() -> None:
    url = http.check_address("--metrics-url", "http://me:s3cr%21t@127.0.0.1:1/metrics/")
    with pytest.raises(CommandError) as caught:
        list(http.lines(http.new_client(), url, 10))
    assert caught.value.cause.startswith("http://127.0.0.1:1/metrics cannot be read")
    assert "s3cr" not in caught.value.cause + hide("s3cr!t s3cr%21t")


@pytest.mark.parametrize("url", ["", "x", "ftp://h/", "http://", "http://h:x/", "http://h:99999/"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(CommandError):
        http.check_address("--metrics-url", url)
