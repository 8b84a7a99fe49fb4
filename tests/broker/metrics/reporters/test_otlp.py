"""An OTLP receiver as it may be: there, away, hanging, refusing, not OTLP at all."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h11
import pytest
import trio
import trio.testing
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from kpybroker.broker.client_metrics.received import ReceivedMetrics
from kpybroker.broker.loop.clock import SystemClock
from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.broker.metrics.reporters import otlp
from kpybroker.broker.metrics.reporters.otlp import RESPONSE_BYTES_MAX, OtlpReporter, Sent
from kpybroker.broker.metrics.reporters.periodic import ReportError
from kpybroker.metrics.otlp import POINTS_MAX
from kpybroker.metrics.reading import Reading, single
from kpybroker.metrics.spelling import Spelling
from kpybroker.metrics.tables import log, replication
from tests.broker.replication.test_traffic import produce
from tests.support.brokers.hosted import until
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.metrics.pushes import gauge, metrics_data, pushed
from tests.support.storage.batches import batch

SECRET = "Bearer s3cret"
RESPONSE = ExportMetricsServiceResponse().SerializeToString()


class Receiver:
    """`requests` are those that arrived: their head and body. Each gets `status`, `body` and `headers`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1/metrics"
        self.status, self.reason, self.body = 200, b"OK", RESPONSE
        self.headers: list[tuple[str, str]] = []
        self.requests: list[tuple[h11.Request, bytes]] = []
        self.arrived = trio.Event()
        self.responds = True

    async def serve(self, stream: trio.abc.Stream) -> None:
        http = h11.Connection(h11.SERVER)
        request, body = h11.Request(method="GET", target="/", headers=[("Host", "")]), b""
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some(65536)))
            elif isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self.requests.append((request, body))
                self.arrived.set()
                if not self.responds:
                    await trio.sleep_forever()
                headers = [("Content-Length", str(len(self.body))), *self.headers]
                response = h11.Response(status_code=self.status, reason=self.reason, headers=headers)
                parts = (response, h11.Data(data=self.body), h11.EndOfMessage())
                await stream.send_all(b"".join(http.send(part) or b"" for part in parts))
                http.start_next_cycle()
            else:
                return

    @property
    def metrics(self) -> dict[str, int]:
        """Name -> number of its points in all requests."""
        found: dict[str, int] = {}
        for _, body in self.requests:
            for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for metric in of_resource.scope_metrics[0].metrics:
                    points = getattr(metric, metric.WhichOneof("data") or "").data_points
                    found[metric.name] = found.get(metric.name, 0) + len(points)
        return found


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    made = Receiver(listener.socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, made.serve, [listener])
        yield made
        nursery.cancel_scope.cancel()


async def read_one() -> list[Reading]:
    return [single((replication.PARTITION_COUNT, 3))]


def reporter(url: str, read: Callable[[], Awaitable[list[Reading]]] = read_one) -> OtlpReporter:
    headers = {"Authorization": SECRET}
    sent = Sent(Spelling.JMX_EXPORTER, read)
    return OtlpReporter(url, headers, sent, lambda: {"service.name": "x"}, SystemClock())


async def test_a_report_is_a_post_with_the_headers() -> None:
    async with receiver() as there:
        await reporter(there.url).report()
    ((request, _),) = there.requests
    headers = {name.decode().lower(): value.decode() for name, value in request.headers}
    assert (request.method, request.target) == (b"POST", b"/v1/metrics")
    assert (headers["authorization"], headers["content-type"]) == (SECRET, "application/x-protobuf")
    assert there.metrics == {"kafka_server_replicamanager_partitioncount": 1}


async def test_a_large_reading_is_several_posts() -> None:
    rows = [(f"topic-{index}", "0") for index in range(POINTS_MAX + 1)]

    async def read() -> list[Reading]:
        return [Reading(rows, [(log.SIZE, list(range(len(rows))))])]

    async with receiver() as there:
        await reporter(there.url, read).report()
    assert len(there.requests) == 2
    assert there.metrics == {"kafka_log_log_size": len(rows)}


async def test_a_receiver_that_is_down_is_an_error() -> None:
    async with receiver() as there:
        pass
    with pytest.raises(ReportError, match=r"^Connection refused$"):
        await reporter(there.url).report()


async def test_a_receiver_that_hangs_blocks_no_one_and_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "REQUEST_S", 0.2)
    failures: list[ReportError] = []
    steps = 0

    async def report() -> None:
        with pytest.raises(ReportError) as caught:
            await reporter(there.url).report()
        failures.append(caught.value)

    async with receiver() as there:
        there.responds = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(report)
            await there.arrived.wait()
            while not failures:
                await trio.lowlevel.checkpoint()
                steps += 1
    assert [str(error) for error in failures] == ["no response within 0.2 s"]
    assert steps > 10


@pytest.mark.parametrize(
    ("status", "reason", "body", "text"),
    [
        (401, b"Unauthorized", b"", "HTTP 401 Unauthorized"),
        (503, b"", b"", "HTTP 503"),
        (307, b"Temporary Redirect", b"", "HTTP 307 Temporary Redirect"),
        (200, b"OK", b"<html>", "its response is not OTLP: is this the port for OTLP over HTTP?"),
        (200, b"OK", b"x" * (RESPONSE_BYTES_MAX + 1), f"its response is larger than {RESPONSE_BYTES_MAX} bytes"),
    ],
)
async def test_what_the_receiver_does_not_take_is_an_error(status: int, reason: bytes, body: bytes, text: str) -> None:
    async with receiver() as there:
        there.status, there.reason, there.body = status, reason, body
        there.headers = [("Location", "/elsewhere")]
        with pytest.raises(ReportError) as caught:
            await reporter(there.url).report()
    assert str(caught.value) == text
    assert len(there.requests) == 1


async def test_points_that_are_rejected_are_reported_in_a_line_of_printable_text() -> None:
    response = ExportMetricsServiceResponse()
    response.partial_success.rejected_data_points = 7
    response.partial_success.error_message = "too many\nlabels\x1b[31m" + "x" * 1000
    async with receiver() as there:
        there.body = response.SerializeToString()
        with pytest.raises(ReportError) as caught:
            await reporter(there.url).report()
    assert str(caught.value).startswith("7 points were rejected: too many?labels?[31mxxx")
    assert len(str(caught.value)) < 300


async def test_the_headers_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with receiver() as there:
        sends = reporter(there.url)
        await sends.report()
        there.status = 401
        with pytest.raises(ReportError):
            await sends.report()
    assert "s3cret" not in caplog.text
    assert not [record for record in caplog.records if record.name.startswith("http")]


async def test_a_broker_reports_what_it_counted(tmp_path: Path) -> None:
    async with (
        receiver() as there,
        running_broker(
            tmp_path,
            topics=["t"],
            kpybroker_otlp_endpoint=there.url.removesuffix("/v1/metrics"),
            kpybroker_otlp_interval_ms="1000",
            kpybroker_otlp_headers="Authorization=Bearer%20s3cret",
        ) as broker,
    ):
        await ask(broker, produce("t", batch(b"one", b"two")), 9)
        await there.arrived.wait()
        resource = f"{broker.cluster_id}/0"
    request, body = there.requests[0]
    assert dict(request.headers)[b"authorization"] == SECRET.encode()
    (of_resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    attributes = {one.key: one.value.string_value for one in of_resource.resource.attributes}
    assert (attributes["service.name"], attributes["service.instance.id"]) == ("kpybroker", resource)
    (metric,) = (
        one
        for one in of_resource.scope_metrics[0].metrics
        if one.name == "kafka_server_brokertopicmetrics_messagesin_total"
    )
    assert [point.as_int for point in metric.sum.data_points] == [2, 2]


async def test_what_clients_pushed_is_forwarded_once_with_their_resources() -> None:
    now_ms = 5_000
    host: Any = SimpleNamespace(slow_work=SlowWork(), clock=SimpleNamespace(time_ms=lambda: now_ms))
    received = ReceivedMetrics(host)
    sent = Sent(Spelling.JMX_EXPORTER, read_one, received.series)

    def forwarded(there: Receiver) -> list[tuple[str, str, float]]:
        return [
            (attributes["client_id"], metric.name, metric.gauge.data_points[0].as_double)
            for _, body in there.requests
            for of_resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for attributes in [{one.key: one.value.string_value for one in of_resource.resource.attributes}]
            for scope in of_resource.scope_metrics
            for metric in scope.metrics
            if "client_id" in attributes
        ]

    async with receiver() as there:
        sends = OtlpReporter(there.url, {}, sent, lambda: {"service.name": "x"}, host.clock)
        await received.receive(pushed(metrics_data(gauge("a.b", 1.5), group_id="g")))
        there.status = 503
        with pytest.raises(ReportError):
            await sends.report()
        there.status = 200
        there.requests.clear()
        now_ms += 1
        await sends.report()
        assert forwarded(there) == [("orders", "a.b", 1.5)]
        there.requests.clear()
        now_ms += 1
        await sends.report()
        assert forwarded(there) == []
        await received.receive(pushed(metrics_data(gauge("a.b", 2.5))))
        await sends.report()
        assert forwarded(there) == [("orders", "a.b", 2.5)]


async def test_a_broker_forwards_what_clients_push_to_the_same_address(tmp_path: Path) -> None:
    async with (
        receiver() as there,
        running_broker(
            tmp_path,
            kpybroker_otlp_endpoint=there.url.removesuffix("/v1/metrics"),
            kpybroker_otlp_interval_ms="1000",
            kpybroker_otlp_headers="Authorization=Bearer%20s3cret",
        ) as broker,
    ):
        await broker.received_metrics.receive(pushed(metrics_data(gauge("app.queue", 1.5), group_id="g")))
        await until(lambda: "app.queue" in there.metrics)
    (request, body) = next(one for one in there.requests if b"app.queue" in one[1])
    assert dict(request.headers)[b"authorization"] == SECRET.encode()
    (of_resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    attributes = {one.key: one.value.string_value for one in of_resource.resource.attributes}
    assert (attributes["service.name"], attributes["group_id"]) == ("orders", "g")
