"""The metrics of the group coordinator, next to Kafka 4.3.1's after the same members, by Jolokia on both."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from compat_tests.conftest import StartBroker
from compat_tests.metrics.compare import properties_of
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.kraft import kafka_with_jolokia
from compat_tests.support.quick import create_topic
from compat_tests.support.waiting import eventually
from kpybroker.metrics.tables import coordinators
from tests.metrics.kafka_4_groups import KAFKA_4_3_1
from tests.support.network.ports import free_port

pytestmark = pytest.mark.wide

MBEAN = "kafka.server:type=group-coordinator-metrics"
SETTLE_S = 60.0
COUNTED = (
    *("consumer-group-rebalance-count", "group-completed-rebalance-count"),
    *("offset-commit-count", "offset-expiration-count", "offset-deletion-count"),
)
TAGGED = ("group-count", "consumer-group-count", "share-group-count", "streams-group-count", "num-partitions")

MBeans = dict[str, dict[str, Any]]
"""The attributes of each MBean by its tags, such as `state=Stable`."""


def mbeans(port: int) -> MBeans:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/jolokia/read/{MBEAN},*") as response:
        tagged = json.loads(response.read()).get("value", {})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/jolokia/read/{MBEAN}") as response:
        plain = json.loads(response.read())["value"]
    return {_tags(name): value for name, value in tagged.items()} | {"": plain}


def _tags(name: str) -> str:
    _, properties = properties_of(name)
    return ",".join(f"{key}={value}" for key, value in properties.items() if key != "type")


def play(bootstrap: str, port: int) -> MBeans:
    """A classic and a consumer group of one member each; both commit, and stay until they are looked at."""
    create_topic(bootstrap, "t", 2)
    consumers = [
        Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": protocol,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        for protocol in ("classic", "consumer")
    ]
    for consumer in consumers:
        consumer.subscribe(["t"])

    def have_all() -> bool:
        for consumer in consumers:
            consumer.poll(0.1)
        return all(len(consumer.assignment()) == 2 for consumer in consumers)

    eventually(have_all, "both members have the topic", SETTLE_S)
    for consumer in consumers:
        positions = consumer.assignment()
        for position in positions:
            position.offset = 0
        consumer.commit(offsets=positions, asynchronous=False)

    def is_stable() -> bool:
        return bool(mbeans(port)["state=Stable"]["consumer-group-count"] == 1)

    eventually(is_stable, "the consumer group is stable", SETTLE_S)
    found = mbeans(port)
    for consumer in consumers:
        consumer.close()
    return found


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[MBeans]:
    with kafka_with_jolokia(tmp_path / "kafka", {"group.consumer.assignment.interval.ms": "0"}) as (broker, port):
        yield play(broker.bootstrap, port)


def test_attributes_and_counts_are_kafkas(kafka: MBeans, own_broker: StartBroker) -> None:
    port = free_port()
    ours = play(group_broker(own_broker, kpybroker_metrics_port=str(port)).bootstrap, port)
    assert {name for attributes in kafka.values() for name in attributes} == KAFKA_4_3_1
    here = {family.attribute for family in coordinators.OF_PROTOCOLS}
    assert {name for attributes in ours.values() for name in attributes} == here
    assert {name: ours[""][name] for name in COUNTED} == {name: kafka[""][name] for name in COUNTED}
    theirs = {
        name: {key: value for key, value in attributes.items() if key in TAGGED}
        for name, attributes in kafka.items()
        if name
    }
    assert {name: attributes for name, attributes in ours.items() if name} == {
        name: attributes for name, attributes in theirs.items() if attributes
    }
