"""The tools of 0.8 and 0.10 that measure. What they measure depends on the machine; what they moved does not."""

from __future__ import annotations

import re

import pytest

from compat_tests.field.era import Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster

pytestmark = pytest.mark.wide

COUNT = 2000


def result_of(lines: list[str]) -> dict[str, str]:
    """The one row of numbers, by the names in the header."""
    header, row = (re.split(r",\s*", line) for line in lines if line.count(",") > 3)
    return dict(zip(header, row, strict=True))


def test_producer_and_consumers_are_measured(cluster: Cluster, era: Era, name: str) -> None:
    """ProducerPerformance, ConsumerPerformance (a group in ZooKeeper) and SimpleConsumerPerformance."""
    cluster.create(name, "1:2,1:2")
    how = ("--topics", name, "--messages", str(COUNT), "--message-size", "50", "--batch-size", "100", "--sync")
    assert result_of(era.run("ProducerPerformance", *how).lines)["total.data.sent.in.nMsg"] == str(COUNT)
    ends = [quick.end_offset(cluster.bootstrap, name, partition) for partition in (0, 1)]
    assert sum(ends) == COUNT
    read = quick.read(cluster.bootstrap, [(name, 0), (name, 1)], COUNT)
    assert {len(message.value()) for message in read} == {50}

    limit = ("--topic", name, "--messages")
    group = result_of(era.run("ConsumerPerformance", *limit, str(COUNT), "--group", name).lines)
    assert group["data.consumed.in.nMsg"] == str(COUNT)
    server = ("--server", f"kafka://{cluster.brokers[1].bootstrap}")
    alone = result_of(era.run("SimpleConsumerPerformance", *server, *limit, str(ends[0])).lines)
    assert alone["data.consumed.in.nMsg"] == str(ends[0])


def test_the_way_through_a_broker_is_measured(cluster: Cluster, era: Era, name: str) -> None:
    """TestEndToEndLatency of 0.8.2 (a group in ZooKeeper), EndToEndLatency of 0.10: each record is sent and read."""
    cluster.create(name, "1:2")
    if era.version == "0.8.2.2":
        what: tuple[str, ...] = ("TestEndToEndLatency", cluster.bootstrap, cluster.zookeeper, name, "30", "100", "-1")
    else:
        what = ("EndToEndLatency", cluster.bootstrap, name, "30", "all", "100")
    said = era.run(*what).out
    assert re.search(r"Avg latency: \d+\.\d+ ms", said)
    assert re.search(r"Percentiles: 50th = \d+, 99th = \d+, 99.9th = \d+", said)
    assert quick.end_offset(cluster.bootstrap, name, 0) == 30


def test_api_versions_are_listed(cluster: Cluster) -> None:
    """BrokerApiVersionsCommand of 0.10.2, for each broker: what both sides know, and the APIs of later times."""
    said = Era("0.10.2.2", cluster).run("BrokerApiVersionsCommand").out
    found = re.findall(r"(\w+)\((\d+)\): 0(?: to (\d+))?(?: \[usable: (\d+)\])?", said)
    brokers = said.split("(id: ")[1:]
    assert sorted(part[0] for part in brokers) == ["1", "2"]
    usable = {name: number for name, _, _, number in found if name != "UNKNOWN"}
    assert (usable["Produce"], usable["Fetch"], usable["Offsets"]) == ("2", "3", "1")
    assert len(usable) == 21
    assert {int(number) for name, number, _, _ in found if name == "UNKNOWN"} >= set(range(21, 48))
