"""The metrics of share groups and streams groups, next to Kafka 4.3.1's after the same members, by Jolokia on both."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ShareConsumer

from compat_tests.conftest import StartBroker
from compat_tests.metrics.compare import is_listed
from compat_tests.streams.groups import streams_broker
from compat_tests.support.command_line import CommandLine
from compat_tests.support.kraft import kafka_with_jolokia
from compat_tests.support.quick import create_topic, fill
from compat_tests.support.waiting import eventually
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import WireCluster
from tests.metrics import absent
from tests.support.network.ports import free_port
from tests.support.requests.streams_application import SETTLE_S, Application
from tests.support.requests.streams_group_requests import topology

pytestmark = pytest.mark.wide

COUNT = 10
SHARES = ("ShareGroupMetrics", "SharePartitionMetrics", "ShareSessionCache", "share-coordinator-metrics")
TOPIC = "kafka.server:name={},topic=t,type=BrokerTopicMetrics"
COORDINATOR, STATES = "kafka.server:type=group-coordinator-metrics", "kafka.server:type=share-coordinator-metrics"
SAME = {
    TOPIC.format("TotalShareAcknowledgementRequestsPerSec"): "Count",
    "kafka.server:ackType=Accept,name=RecordAcknowledgementsPerSec,type=ShareGroupMetrics": "Count",
    "kafka.server:name=PartitionLoadTimeMs,type=ShareGroupMetrics": "Count",
    "kafka.server:name=ShareSessionsCount,type=ShareSessionCache": "Value",
    "kafka.server:name=SharePartitionsCount,type=ShareSessionCache": "Value",
    "kafka.server:group=g,name=InFlightMessageCount,partition=0,topic=t,type=SharePartitionMetrics": "Value",
}
"""Of these MBeans, the attribute that depends on nothing but what the members do."""

MBeans = dict[str, dict[str, Any]]


def read(port: int, of_type: str) -> MBeans:
    """All MBeans of `kafka.server` of a type, with tags or without."""
    found: MBeans = {}
    for query in (f"kafka.server:type={of_type},*", f"kafka.server:type={of_type}"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/jolokia/read/{query}") as response:
            value = json.loads(response.read()).get("value")
        found |= value or {} if query.endswith("*") else {query: value} if value else {}
    return found


def play(bootstrap: str, port: int) -> MBeans:
    """A share group's member that accepts ten records, and a streams group's; both stay until they are looked at."""
    create_topic(bootstrap, "t")
    fill(bootstrap, "t", [str(number) for number in range(COUNT)], 0)
    CommandLine(bootstrap).run("config", "set", "group", "g", "share.auto.offset.reset=earliest")
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])
    read_by_now = 0

    def has_all() -> bool:
        nonlocal read_by_now
        read_by_now += len(consumer.poll(0.2))
        return read_by_now == COUNT

    eventually(has_all, "ten records are read", SETTLE_S)
    consumer.commit_sync(SETTLE_S)
    with WireCluster(Settings(bootstrap, {}, SETTLE_S, "the test")) as cluster:
        application = Application(cluster, "t")
        application.join(topology("t"))
        application.commit(COUNT)
        found = read(port, "group-coordinator-metrics") | read(port, "BrokerTopicMetrics")
        for of_type in SHARES:
            found |= read(port, of_type)
        application.beat(-1)
    consumer.close()
    return found


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[MBeans]:
    with kafka_with_jolokia(tmp_path / "kafka") as (broker, port):
        yield play(broker.bootstrap, port)


def of_shares(found: MBeans) -> set[str]:
    return {name for name in found if "Share" in name}


def test_mbeans_and_counts_are_kafkas(kafka: MBeans, own_broker: StartBroker) -> None:
    port = free_port()
    ours = play(streams_broker(own_broker, kpybroker_metrics_port=str(port)).bootstrap, port)
    assert of_shares(ours) <= of_shares(kafka)
    assert [name for name in sorted(of_shares(kafka) - of_shares(ours)) if not is_listed(name, absent.SHARES)] == []
    counted = {name: (found[name][attribute] for found in (kafka, ours)) for name, attribute in SAME.items()}
    assert {name: tuple(values) for name, values in counted.items() if len(set(values)) > 1} == {}
    for found in (kafka, ours):
        assert found[TOPIC.format("TotalShareFetchRequestsPerSec")]["Count"] >= 1
        assert found[COORDINATOR]["streams-group-rebalance-count"] >= 1
        assert found[COORDINATOR]["share-group-rebalance-count"] >= 1
        assert found[STATES]["write-total"] >= 1
    for name in (COORDINATOR, STATES):
        missing = kafka[name].keys() - ours[name].keys()
        assert ours[name].keys() <= kafka[name].keys()
        patterns = [pattern for one in absent.GROUPS for pattern in one.split("|")]
        assert [one for one in sorted(missing) if not any(fnmatchcase(one, pattern) for pattern in patterns)] == []
