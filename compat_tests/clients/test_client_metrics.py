"""Stock clients push their metrics once there is a subscription (KIP-714): the Java clients of both versions,
librdkafka and franz-go. What they push is received by this process, and read as OTLP.

Whether a client says at its end that a push is its last depends on what it does at that moment: not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from compat_tests.support.command_line import CommandLine
from compat_tests.support.groups.members import start_member
from compat_tests.support.tools import VERSIONS, Tools
from compat_tests.support.waiting import eventually
from kpybroker.broker.app import Broker
from kpybroker.broker.client_metrics.receiver import Pushed
from tests.support.programs.threaded_broker import prepared_broker
from tests.support.requests.client_metrics_requests import Recorder

START_S = 60
OPTIONS = {"enable.metrics.push": True}
INTERVAL_MS = 200


@dataclass
class Receiving:
    """A broker of this process, and what its clients have pushed."""

    bootstrap: str = ""
    recorder: Recorder = field(default_factory=Recorder)

    def subscribe(self, name: str, **props: str) -> None:
        pairs = [f"{key.replace('_', '.')}={value}" for key, value in props.items()]
        CommandLine(self.bootstrap).run("config", "set", "client-metrics", name, f"interval.ms={INTERVAL_MS}", *pairs)

    def pushed_by(self, client_id: str) -> list[Pushed]:
        return [one for one in list(self.recorder.pushed) if one.client_id == client_id]


@pytest.fixture
def receiving(tmp_path: Path) -> Iterator[Receiving]:
    found = Receiving()

    def prepare(broker: Broker) -> None:
        broker.client_metrics.receiver = found.recorder

    with prepared_broker(tmp_path, prepare, kpybroker_client_metrics="subscribed") as found.bootstrap:
        yield found


def names_in(pushed: Pushed) -> set[str]:
    """The names of the metrics, which must be there."""
    data = MetricsData.FromString(pushed.metrics)
    names = {
        metric.name
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    return names


@pytest.mark.parametrize("version", VERSIONS)
def test_a_java_producer_pushes_what_is_asked_for(receiving: Receiving, version: str) -> None:
    receiving.subscribe("producers", metrics="org.apache.kafka.producer.record", match="client_id=app-.*")
    tools = Tools(version, receiving.bootstrap)
    produce_until_pushed(tools, receiving, "app-1")
    produce(tools, receiving.bootstrap, "other")
    pushes = receiving.pushed_by("app-1")
    assert {(one.software_name, one.address) for one in pushes} == {("apache-kafka-java", "127.0.0.1")}
    assert {one.software_version for one in pushes} == {"4.3.1" if version == "4.x" else "3.9.1"}
    assert len({one.instance_id for one in pushes}) == 1
    names = set().union(*map(names_in, pushes))
    assert any(name.startswith("org.apache.kafka.producer.record") for name in names), names
    assert all(name.startswith("org.apache.kafka.producer.record") for name in names), names
    assert receiving.pushed_by("other") == []


def produce(tools: Tools, bootstrap: str, client_id: str) -> None:
    """For two seconds, which is several intervals."""
    properties = ("--producer-props", f"bootstrap.servers={bootstrap}", f"client.id={client_id}")
    tools.run(
        *("producer-perf-test", "--topic", "t", "--num-records", "400", "--record-size", "10", "--throughput", "200"),
        *properties,
    )


def produce_until_pushed(tools: Tools, receiving: Receiving, client_id: str) -> None:
    """On a busy machine a JVM may take so long to begin that two seconds are over before its first interval is."""

    def pushed() -> bool:
        produce(tools, receiving.bootstrap, client_id)
        return bool(receiving.pushed_by(client_id))

    eventually(pushed, "a push of a producer")


def test_a_subscription_that_is_made_later_reaches_clients_that_connect_later(receiving: Receiving) -> None:
    tools = Tools("4.x", receiving.bootstrap)
    produce(tools, receiving.bootstrap, "early")
    receiving.subscribe("all", metrics="*")
    produce_until_pushed(tools, receiving, "late")
    assert receiving.pushed_by("early") == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_pushes_in_what_it_compresses_with(receiving: Receiving, codec: str) -> None:
    receiving.subscribe("all", metrics="org.apache.kafka.")
    settings = {"bootstrap.servers": receiving.bootstrap, "client.id": "py", "compression.type": codec, **OPTIONS}
    producer = Producer(settings)
    producer.produce("t", b"x")
    assert producer.flush(START_S) == 0
    eventually(lambda: has_pushed(receiving), "pushes of a librdkafka producer")
    check_pushes(receiving, "producer")
    del producer


def test_a_librdkafka_consumer_pushes(receiving: Receiving) -> None:
    receiving.subscribe("all", metrics="org.apache.kafka.")
    settings = {"bootstrap.servers": receiving.bootstrap, "client.id": "py", "group.id": "g", **OPTIONS}
    consumer = Consumer({**settings, "allow.auto.create.topics": True})
    consumer.subscribe(["t"])

    def consumes() -> bool:
        consumer.poll(0.05)
        return has_pushed(receiving)

    eventually(consumes, "pushes of a librdkafka consumer")
    check_pushes(receiving, "consumer")
    consumer.close()


def has_pushed(receiving: Receiving) -> bool:
    return len(receiving.pushed_by("py")) >= 2


def check_pushes(receiving: Receiving, kind: str) -> None:
    pushes = receiving.pushed_by("py")
    assert {one.software_name for one in pushes} == {"confluent-kafka-python"}
    assert all("rdkafka" in one.software_version for one in pushes)
    names = set().union(*map(names_in, pushes))
    assert names
    assert all(name.startswith(f"org.apache.kafka.{kind}.") for name in names), sorted(names)


@pytest.mark.wide
def test_franz_go_pushes_unasked(receiving: Receiving) -> None:
    receiving.subscribe("all", metrics="org.apache.kafka.")  # it takes `*` for a prefix, which no name has
    Producer({"bootstrap.servers": receiving.bootstrap, "enable.metrics.push": False}).list_topics("t", START_S)
    member = start_member("franz-go", receiving.bootstrap, group="g", topics=["t"])

    def pushes() -> list[Pushed]:
        return [one for one in list(receiving.recorder.pushed) if one.software_name == "kgo"]

    eventually(pushes, "a push of franz-go")
    names = set().union(*map(names_in, pushes()))
    member.close()
    assert names
    assert all(name.startswith("org.apache.kafka.") for name in names), sorted(names)
