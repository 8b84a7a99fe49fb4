"""OTLP from a broker that runs as a process, to a receiver that knows nothing of it but the protocol."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from compat_tests.conftest import Launcher
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

TOKEN = "Bearer of-otlp"


class Receiver(BaseHTTPRequestHandler):
    """Keeps the newest points of each metric; hangs once `hangs` is set."""

    protocol_version = "HTTP/1.1"
    points: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    resources: set[frozenset[tuple[str, str]]] = set()
    hangs = threading.Event()
    ends = threading.Event()
    asked_while_hanging = threading.Event()

    def do_POST(self) -> None:
        assert (self.path, self.headers["Content-Type"]) == ("/v1/metrics", "application/x-protobuf")
        assert self.headers["Authorization"] == TOKEN
        request = ExportMetricsServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        if self.hangs.is_set():
            self.asked_while_hanging.set()
            self.ends.wait()
            return
        for of_resource in request.resource_metrics:
            self.resources.add(frozenset((one.key, one.value.string_value) for one in of_resource.resource.attributes))
            for metric in of_resource.scope_metrics[0].metrics:
                for point in getattr(metric, metric.WhichOneof("data") or "").data_points:
                    labels = frozenset((one.key, one.value.string_value) for one in point.attributes)
                    is_summary = metric.WhichOneof("data") == "summary"
                    number = point.count if is_summary else getattr(point, point.WhichOneof("value"))
                    self.points[metric.name, labels] = number
        body = ExportMetricsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    Receiver.ends.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_receiver_gets_the_names_of_metrics_and_one_that_hangs_holds_up_no_client(
    launcher: Launcher, port: int
) -> None:
    keys = {
        "kpybroker.otlp.endpoint": f"http://127.0.0.1:{port}",
        "kpybroker.otlp.interval.ms": "1000",
        "kpybroker.otlp.headers": "Authorization=Bearer%20of-otlp",
    }
    broker = Broker("kpybroker", launcher.directory / "otlp", None, keys)
    labels = frozenset({("topic", "orders")})
    messages = "kafka_server_brokertopicmetrics_messagesin_total", labels
    try:
        broker.start()
        tools = Tools("3.9.1", broker.bootstrap)
        tools.run("topics", "--create", "--topic", "orders")
        tools.run("console-producer", "--topic", "orders", stdin="a line\n" * 3)
        eventually(lambda: Receiver.points.get(messages) == 3, "three messages")
        times = "kafka_network_requestmetrics_totaltimems", frozenset({("request", "Produce")})
        assert Receiver.points[times] >= 1
        (resource,) = map(dict, Receiver.resources)
        assert resource["service.name"] == "kpybroker"
        assert resource["service.instance.id"].endswith("/0")
        Receiver.hangs.set()
        assert Receiver.asked_while_hanging.wait(60)
        tools.run("console-producer", "--topic", "orders", stdin="another\n")
        assert tools.run("console-consumer", "--topic", "orders", "--from-beginning", "--max-messages", "4").code == 0
        eventually(lambda: "no response within 10 s" in broker.service.output(), "a line about it")
        assert TOKEN not in broker.service.output()
    finally:
        broker.service.kill()
