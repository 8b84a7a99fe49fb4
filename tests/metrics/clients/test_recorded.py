"""Pushes as they were recorded from clients, for a subscription to `org.apache.kafka.`, on 28 November 2026.

The console producer and consumer of Kafka 4.3.1, a transactional producer and a consumer of librdkafka 2.16.0, and a
client of franz-go 1.22.3 that sends and reads. Java has a resource for each metric; librdkafka names a label `node.id`,
its times are no times of day, and its totals begin with the subscription; franz-go leaves out what is zero.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kpybroker.metrics.clients.decoding import Decoded, decode
from kpybroker.metrics.clients.otlp import requests_of_clients
from kpybroker.metrics.clients.series import SeriesKind
from kpybroker.metrics.clients.table import ClientTable, Push
from kpybroker.metrics.clients.text import exposition_of_clients

SAMPLES = Path(__file__).with_name("samples")
COUNTS = {
    "java-producer": 108,
    "java-consumer": 147,
    "librdkafka-producer": 12,
    "librdkafka-consumer": 15,
    "franz-go": 8,
}


def recorded(name: str) -> bytes:
    return gzip.decompress((SAMPLES / f"{name}.gz").read_bytes())


def kept(found: Decoded, pushes: int = 1) -> ClientTable:
    table = ClientTable()
    for number in range(pushes):
        push = Push(bytes(16), "c", "software", "1.0", "10.0.0.1", 30_000, False)
        table.push(push, found.resource, found.samples, found.left_out, number)
    return table


@pytest.mark.parametrize("name", COUNTS)
def test_all_of_a_push_is_taken(name: str) -> None:
    found = decode(recorded(name))
    assert (len(found.samples), found.left_out) == (COUNTS[name], 0)
    assert {one.series.name.startswith("org.apache.kafka.") for one in found.samples} == {True}
    assert {one.is_delta for one in found.samples if one.series.kind is SeriesKind.COUNT} == {True}
    assert kept(found).clients(0)[0].left_out == 0


@pytest.mark.parametrize("name", COUNTS)
def test_all_of_it_is_on_the_page_and_is_forwarded(name: str) -> None:
    table = kept(decode(recorded(name)))
    page = text_string_to_metric_families("".join(exposition_of_clients(table.series(0))))
    assert sum(len(family.samples) for family in page) == COUNTS[name]
    (request,) = (one for one in requests_of_clients(table.series(0)) if one is not None)
    (of_resource,) = request.resource_metrics
    metrics = of_resource.scope_metrics[0].metrics
    points = sum(len(getattr(one, one.WhichOneof("data") or "").data_points) for one in metrics)
    assert points == COUNTS[name]


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("java-producer", {}),
        ("java-consumer", {"client_rack": "r1", "group_id": "java-group"}),
        ("librdkafka-producer", {"transactional_id": "tx"}),
        ("librdkafka-consumer", {"client_rack": "r1", "group_id": "rd-group"}),
        ("franz-go", {"client_rack": "r1", "group_id": "franz-group"}),
    ],
)
def test_a_client_says_what_it_is(name: str, resource: dict[str, str]) -> None:
    found = dict(decode(recorded(name)).resource)
    members = {key: found.pop(key) for key in ("group_member_id", "member_id") if key in found}
    assert found == resource
    assert len(members) == ("group_id" in resource)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("java-producer", 'producer_node_request_latency_avg{node_id="node-0"} 16.0'),
        ("java-producer", 'producer_topic_record_send_total{topic="orders"} 30.0'),
        ("java-consumer", 'consumer_fetch_manager_records_lag{partition="1",topic="orders"} 0.0'),
        ("java-consumer", "consumer_coordinator_assigned_partitions{} 2.0"),
        ("librdkafka-producer", 'producer_node_request_latency_max{node_id="0"} 59'),
        ("librdkafka-consumer", "consumer_coordinator_assigned_partitions{} 2"),
        ("franz-go", "producer_connection_creation_total{} 3"),
    ],
)
def test_values_after_three_such_pushes(name: str, line: str) -> None:
    known = ("client_id", "client_instance_id", "client_software_name", "client_software_version")
    found = decode(recorded(name))
    lines = set()
    for family in text_string_to_metric_families("".join(exposition_of_clients(kept(found, 3).series(3)))):
        for one in family.samples:
            own = sorted(
                (key, value) for key, value in one.labels.items() if key not in (*known, *dict(found.resource))
            )
            labels = ",".join(f'{key}="{value}"' for key, value in own)
            lines.add(f"{one.name.removeprefix('org_apache_kafka_')}{{{labels}}} {one.value:g}")
    name_and_labels, value = line.rsplit(" ", 1)
    assert f"{name_and_labels} {float(value):g}" in lines
