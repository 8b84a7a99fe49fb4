"""The endpoint of a running broker, over a real socket, read by Prometheus' own parser."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle import startup
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.metrics.ticker import TICKS_A_WINDOW
from kpybroker.metrics.spelling import Spelling
from tests.broker.replication.test_traffic import fetch, produce
from tests.support.brokers.running_broker import ask, running_broker
from tests.support.metrics.pushes import gauge, metrics_data, pushed
from tests.support.storage.batches import batch

PORT = "0"


async def get(broker: Broker, target: str = "/metrics", verb: str = "GET") -> tuple[int, dict[str, str], str]:
    """Status, headers and body."""
    assert broker.metrics is not None
    assert broker.metrics.address is not None
    http = h11.Connection(h11.CLIENT)
    stream = await trio.open_tcp_stream(*broker.metrics.address)
    async with stream:
        headers = [("Host", "localhost"), ("Connection", "close")]
        request = h11.Request(method=verb, target=target, headers=headers)
        await stream.send_all((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
        body = b""
        status, found = 0, {}
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Response):
                status = event.status_code
                found = {name.decode().lower(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
            else:
                return status, found, body.decode()


async def scrape(broker: Broker, spelling: str = "") -> dict[str, Metric]:
    status, headers, body = await get(broker, f"/metrics?spelling={spelling}" if spelling else "/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = list(text_string_to_metric_families(body))
    names = [family.name for family in families]
    assert len(set(names)) == len(names)
    return {family.name: family for family in families}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """The sample with just these labels."""
    (found,) = (
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )
    return found


async def test_the_state_of_a_broker_is_seen_from_its_start_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    async def look(broker: Broker) -> None:
        seen.append(value(await scrape(broker), "kafka_server_kafkaserver_brokerstate"))

    def looking_first(call: Any) -> Any:
        async def looked(broker: Broker, *arguments: Any) -> Any:
            await look(broker)
            return await call(broker, *arguments)

        return looked

    monkeypatch.setattr(startup, "agree_on_ids", looking_first(startup.agree_on_ids))
    monkeypatch.setattr(startup, "load_logs", looking_first(startup.load_logs))
    monkeypatch.setattr(Broker, "_close_parts", looking_first(Broker._close_parts))
    async with running_broker(tmp_path, kpybroker_metrics_port=PORT) as broker:
        await look(broker)
        broker.stop()
        await look(broker)
    assert seen == [1, 2, 3, 6, 7]


async def test_a_page_has_what_was_done(tmp_path: Path) -> None:
    records = batch(b"one", b"two")
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        await ask(broker, produce("t", records), 9)
        await ask(broker, produce("unknown", records), 9)
        await ask(broker, fetch("t"), 12)
        found = await scrape(broker)
        prefix = "kafka_server_brokertopicmetrics"
        assert value(found, f"{prefix}_messagesin_total") == value(found, f"{prefix}_messagesin_total", topic="t") == 2
        assert value(found, f"{prefix}_bytesin_total", topic="t") == len(records)
        assert value(found, f"{prefix}_bytesout_total", topic="t") == len(records)
        requests = "kafka_network_requestmetrics"
        assert value(found, f"{requests}_requests_total", request="Produce", version="9") == 2
        assert value(found, f"{requests}_errors_total", request="Produce", error="NONE") == 1
        assert value(found, f"{requests}_errors_total", request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
        assert value(found, f"{requests}_requestbytes_count", request="Produce") == 2
        partition = {"topic": "t", "partition": "0"}
        assert value(found, "kafka_log_log_logendoffset", **partition) == 2
        assert value(found, "kafka_log_log_size", **partition) == len(records)
        assert value(found, "kafka_cluster_partition_replicascount", **partition) == 1
        assert value(found, "kafka_topic_partition_current_offset", **partition) == 2
        assert value(found, "kafka_server_replicamanager_partitioncount") == 1
        assert value(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
        assert value(found, "kafka_controller_kafkacontroller_globaltopiccount") == 1
        assert value(found, "kafka_brokers") == value(found, "kafka_topic_partitions", topic="t") == 1
        assert value(found, "process_cpu_seconds_total") > 0


async def test_the_volume_of_a_log_directory_is_there_while_the_directory_works(tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)
    async with running_broker(tmp_path, kpybroker_metrics_port=PORT) as broker:
        found = await scrape(broker)
        labels = {"logDirectory": str(tmp_path)}
        assert value(found, "kpybroker_log_directory_total_bytes", **labels) == usage.total
        assert 0 <= value(found, "kpybroker_log_directory_usable_bytes", **labels) <= usage.total


async def test_fetches_count_once_more_by_who_fetches(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        await ask(broker, fetch("t"), 12)
        await ask(broker, fetch("t"), 12)
        await ask(broker, fetch("t", replica_id=1), 12)
        found = await scrape(broker)
        for name, count in (("Fetch", 3), ("FetchConsumer", 2), ("FetchFollower", 1)):
            assert value(found, "kafka_network_requestmetrics_requests_total", request=name, version="12") == count


@pytest.mark.parametrize("spelling", Spelling)
async def test_every_spelling_can_be_asked_for_and_configured(tmp_path: Path, spelling: Spelling) -> None:
    async with running_broker(
        tmp_path, kpybroker_metrics_port=PORT, kpybroker_metrics_spelling=spelling.value
    ) as broker:
        configured, asked = await scrape(broker), await scrape(broker, spelling.value)
        assert configured.keys() == asked.keys()


@pytest.mark.parametrize(
    ("verb", "target", "status", "text"),
    [
        ("GET", "/", 200, "the metrics are at /metrics"),
        ("HEAD", "/metrics", 200, ""),
        ("GET", "/nothing", 404, "GET /metrics"),
        ("POST", "/metrics", 405, "POST is not allowed"),
        ("GET", "/metrics?spelling=mine", 400, "one of jmx-exporter, metrics-reporter, kafka-overview"),
    ],
)
async def test_other_requests(tmp_path: Path, verb: str, target: str, status: int, text: str) -> None:
    async with running_broker(tmp_path, kpybroker_metrics_port=PORT) as broker:
        found, _, body = await get(broker, target, verb)
        assert found == status
        assert text in body
        assert bool(text) == bool(body)


async def test_a_port_that_is_taken_ends_the_start_with_a_cause_and_a_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises((StartupError, ExceptionGroup)) as caught:
            async with running_broker(tmp_path, kpybroker_metrics_port=str(port)):
                raise AssertionError("it started")
    error = caught.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, StartupError)
    assert str(error).startswith(f"/metrics cannot be served at 127.0.0.1:{port}: Address already in use")
    assert "kpybroker.metrics.port" in error.fix


async def test_without_a_port_there_are_no_metrics_and_no_request_is_timed(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"]) as broker:
        await ask(broker, produce("t", batch(b"one")), 9)
        assert broker.metrics is None
        assert all(route.timed_last == 0 for route in broker.dispatcher.routes)


async def test_rates_and_windows_move_with_the_ticker(tmp_path: Path) -> None:
    async with running_broker(tmp_path, topics=["t"], kpybroker_metrics_port=PORT) as broker:
        assert broker.metrics is not None
        ticker = broker.metrics.ticker
        await ask(broker, produce("t", batch(*[b"x"] * 50)), 9)
        await ticker.tick()
        rates = {(family.name, tags): rate.one_minute for (family, tags), rate in ticker.rates.items()}
        assert rates["MessagesInPerSec", ("t",)] == rates["MessagesInPerSec", ("",)] == 10
        for _ in range(2 * TICKS_A_WINDOW):
            await ticker.tick()
        found = await scrape(broker)
        name = "kafka_network_requestmetrics_requestbytes"
        assert value(found, f"{name}_count", request="Produce") == 1
        assert value(found, name, request="Produce", quantile="0.50") == 0


async def test_what_clients_push_is_on_the_page_after_the_brokers_own(tmp_path: Path) -> None:
    data = metrics_data(gauge("org.apache.kafka.producer.record.queue.time.avg", 2.5), group_id='g"\n')
    forged = metrics_data(gauge("kafka_server_replicamanager_partitioncount", 99))
    async with running_broker(tmp_path, kpybroker_metrics_port=PORT) as broker:
        await broker.received_metrics.receive(pushed(data))
        await broker.received_metrics.receive(pushed(forged, client_id="forger", instance=2))
        families = await scrape(broker)
    (sample,) = families["org_apache_kafka_producer_record_queue_time_avg"].samples
    assert sample.value == 2.5
    assert sample.labels == {
        "client_id": "orders",
        "client_instance_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "client_software_name": "apache-kafka-java",
        "client_software_version": "4.3.1",
        "group_id": 'g"\n',
    }
    (own,) = families["kafka_server_replicamanager_partitioncount"].samples
    assert own.value == 0
    assert families["client_kafka_server_replicamanager_partitioncount"].samples[0].value == 99
