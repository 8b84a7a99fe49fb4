"""The state-change log of a controller at TRACE, in a cluster of two of Kafka 3.9.1 and in one of two of ours.

A topic is made, a broker stops and starts, a preferred leader is elected, the topic is deleted: the same lines. How
often a line is written, and in which order, depends on when the brokers notice each other.
"""

from __future__ import annotations

import pytest

from compat_tests.conftest import Launcher
from compat_tests.metrics.test_against_kafka import changes
from compat_tests.support.cluster import Cluster
from compat_tests.support.tools import Tools

TOPIC = "work"
KINDS = ("kafka", "kpybroker")


def lines_of(cluster: Cluster) -> set[str]:
    """What broker 1, the controller, has written about the topic as controller."""
    for broker in cluster.brokers.values():
        broker.start()
    cluster.create("first", "1:2")  # a logger is known once it has logged
    Tools("3.9.1", cluster.brokers[1].bootstrap).run(
        *("configs", "--alter", "--entity-type", "broker-loggers", "--entity-name", "1"),
        *("--add-config", "state.change.logger=TRACE"),
    )
    cluster.create(TOPIC, "1:2,2:1")
    cluster.brokers[2].stop()
    cluster.wait_for_leader(TOPIC, 1, partition=1)
    cluster.brokers[2].start()
    cluster.wait_for_isr(TOPIC, {1, 2}, partition=1)
    cluster.tools.run("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    cluster.wait_for_leader(TOPIC, 2, partition=1)
    cluster.tools.run("topics", "--delete", "--topic", TOPIC)
    cluster.wait(lambda: cluster.tree.exists(f"/brokers/topics/{TOPIC}") is None, "the topic is gone")
    assert cluster.controller() == 1
    found = set(changes(cluster.brokers[1].service.output()))
    return {line for line in found if "[Controller id=1" in line and "] Received response " not in line}


@pytest.fixture(scope="module")
def found(launcher: Launcher) -> dict[str, set[str]]:
    lines = {}
    for kind in KINDS:
        cluster = Cluster(launcher.directory / f"changes-{kind}", launcher.zookeeper(f"changes-{kind}"), (kind, kind))
        try:
            lines[kind] = lines_of(cluster)
        finally:
            cluster.close()
    return lines


@pytest.mark.wide
def test_a_controller_writes_kafkas_lines(found: dict[str, set[str]]) -> None:
    assert len(found["kafka"]) > 30
    assert sorted(found["kpybroker"] - found["kafka"]) == []
    assert sorted(found["kafka"] - found["kpybroker"]) == []
