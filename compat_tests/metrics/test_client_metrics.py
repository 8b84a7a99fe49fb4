"""Metrics that real clients push (KIP-714): Java's of 3.9.1 and 4.3.1, confluent-kafka's, franz-go's."""

from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compat_tests.faults.clients.others import GO_CLIENTS
from compat_tests.support.tools import VERSIONS, Tools
from kpybroker.testing import Broker
from kpybroker.testing.look import ClientMetrics

SENT = "org.apache.kafka.producer.record.send.total"
SENT_TO_TOPIC = "org.apache.kafka.producer.topic.record.send.total"
CONSUMED = "org.apache.kafka.consumer.fetch.manager.records.consumed.total"
ASSIGNED = "org.apache.kafka.consumer.coordinator.assigned.partitions"
CREATED = "org.apache.kafka.producer.connection.creation.total"
LATENCY = "org.apache.kafka.producer.node.request.latency.max"
RECORDS = 7


@pytest.fixture(scope="module")
def subscribed() -> Iterator[Broker]:
    with Broker(topics={"orders": 2}, config={"kpybroker.metrics.port": 0}) as broker:
        broker.subscribe_client_metrics(interval_ms=300)
        yield broker


def counted(broker: Broker, client_id: str, name: str, wanted: float, **labels: str) -> ClientMetrics:
    """The client, once this value has arrived. A client may end without a last push."""

    def found() -> ClientMetrics | None:
        metrics = broker.client_metrics(client_id)
        return metrics[0] if metrics and metrics[0].value(name, **labels) == wanted else None

    client = broker.wait_for(found, what=f"{name} of {client_id} is {wanted}")
    assert client is not None
    return client


def on_the_page(broker: Broker, name: str) -> dict[str, float]:
    """What `/metrics` has of a name, by client id."""
    with urllib.request.urlopen(broker.status()["brokers"][0]["metrics"]) as response:
        page = text_string_to_metric_families(response.read().decode())
    return {one.labels["client_id"]: one.value for family in page for one in family.samples if one.name == name}


@contextmanager
def started(command: Sequence[str]) -> Iterator[Any]:
    """Popen, of text; ended with the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("version", VERSIONS)
def test_java(subscribed: Broker, version: str) -> None:
    """Its counts are of all that it has done, although it pushes what was added only."""
    tools, name = Tools(version, subscribed.bootstrap_servers), f"producer-{version}"
    before = sum(subscribed.end_offsets("orders").values())
    properties = ("--producer-property", f"client.id={name}")
    with started(tools.command("console-producer", "--topic", "orders", *properties)) as producer:
        producer.stdin.write("".join(f"line {number}\n" for number in range(RECORDS)))
        producer.stdin.flush()
        counted(subscribed, name, SENT, RECORDS)
        producer.stdin.close()
        assert producer.wait(120) == 0
    (found,) = subscribed.client_metrics(name)
    assert sum(subscribed.end_offsets("orders").values()) - before == RECORDS
    assert (found.value(SENT), found.value(SENT_TO_TOPIC, topic="orders")) == (RECORDS, RECORDS)
    assert (found.software_name, found.address) == ("apache-kafka-java", "127.0.0.1")
    assert found.software_version == ("4.3.1" if version == "4.x" else version)
    assert found.left_out == 0
    assert on_the_page(subscribed, "org_apache_kafka_producer_buffer_total_bytes")[name] == 33_554_432


@pytest.mark.parametrize("version", VERSIONS)
def test_a_consumer_of_java(subscribed: Broker, version: str) -> None:
    tools, name, topic = Tools(version, subscribed.bootstrap_servers), f"consumer-{version}", "read"
    if topic in subscribed.topics():
        subscribed.delete_topic(topic)
    subscribed.create_topic(topic, 2)
    subscribed.produce(topic, [str(number) for number in range(RECORDS)])
    properties = ("--consumer-property", f"client.id={name}", "--consumer-property", "client.rack=r1")
    reads = ("--topic", topic, "--group", name, "--from-beginning", *properties)
    with started(tools.command("console-consumer", *reads)) as consumer:
        read = counted(subscribed, name, CONSUMED, RECORDS, topic=topic)
        assert read.value(ASSIGNED) == 2
        assert (read.resource["group_id"], read.resource["client_rack"]) == (name, "r1")
        consumer.terminate()
        consumer.communicate(timeout=120)
    (read,) = subscribed.client_metrics(name)
    assert (read.value(CONSUMED), read.left_out) == (RECORDS, 0)


def test_confluent_kafka(subscribed: Broker) -> None:
    producer = subscribed.producer(library="confluent-kafka", client_id="librdkafka")
    producer.produce("orders", "one")
    producer.flush()
    consumer = subscribed.consumer("librdkafka-group", "orders", library="confluent-kafka", client_id="librdkafka-c")
    found = subscribed.wait_client_metrics("librdkafka", name=LATENCY, pushes=2)
    assert found.value(LATENCY, **{"node.id": "0"}) >= 0

    def assigned() -> bool:
        consumer.poll(0.1)
        read = subscribed.client_metrics("librdkafka-c", name=ASSIGNED)
        return any(one.find(ASSIGNED) and one.value(ASSIGNED) == 2 for one in read)

    subscribed.wait_for(assigned, what="two partitions among the metrics")
    (read,) = subscribed.client_metrics("librdkafka-c")
    assert read.resource["group_id"] == "librdkafka-group"
    assert read.left_out == 0
    consumer.close()


@pytest.mark.wide
def test_franz_go(subscribed: Broker, tmp_path: Path) -> None:
    program = tmp_path / "clients"
    subprocess.run(["go", "build", "-o", program, "."], cwd=GO_CLIENTS, check=True)
    with started([str(program), "franz", subscribed.bootstrap_servers, "orders", "2", "50", "franz"]) as client:
        found = subscribed.wait_client_metrics("kgo", name=CREATED)
        assert found.value(CREATED) >= 1
        assert (found.software_name, found.left_out) == ("kgo", 0)
        client.terminate()
        client.communicate(timeout=120)


def test_a_client_without_a_subscription_pushes_nothing(subscribed: Broker) -> None:
    with Broker(topics=["orders"]) as broker:
        tools = Tools("4.x", broker.bootstrap_servers)
        tools.run("console-producer", "--topic", "orders", stdin="one\n")
        assert broker.requests("GetTelemetrySubscriptions") == []
        assert broker.client_metrics() == []
