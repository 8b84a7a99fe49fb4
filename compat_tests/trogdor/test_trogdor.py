"""Kafka's own workloads, all at once: producers with and without transactions, round trips, storms of connections.

With --all-versions against three brokers too. ConsumeBench is left out: it looks once a minute whether it has ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from compat_tests.conftest import Launcher
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.trogdor.trogdor import NODE, Trogdor, numbers

RECORDS, AT_ONCE, VALUE_BYTES = 10_000, 250, 200
TOPICS, PARTITIONS = 2, 2
CONNECTIONS_A_SECOND, CONNECTIONS_MIN, SUSTAINED = 50, 100, 10
KINDS = ("Producer", "Consumer", "Metadata")
CONNECTIONS = [f"total{kind}Connections" for kind in KINDS]
FAST = 20_000


class Target(NamedTuple):
    bootstrap: str
    replicas: int


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        sizes = [1, 3] if metafunc.config.getoption("--all-versions") else [1]
        metafunc.parametrize("target", sizes, indirect=True, ids=lambda brokers: f"{brokers}-brokers")


@pytest.fixture
def target(request: pytest.FixtureRequest, launcher: Launcher) -> Iterator[Target]:
    if request.param == 1:
        broker = launcher.broker(num_partitions="4")
        yield Target(broker.bootstrap, 1)
        broker.service.kill()
        return
    directory, zookeeper = launcher.directory / "trogdor", launcher.zookeeper("trogdor")
    cluster = Cluster(directory, zookeeper, [launcher.kind] * request.param)
    cluster.start()
    yield Target(cluster.bootstrap, request.param)
    cluster.close()


@pytest.fixture
def trogdor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trogdor]:
    started = Trogdor(tmp_path_factory.mktemp("trogdor"))
    yield started
    started.close()


@pytest.mark.wide
def test_all_workloads_at_once(trogdor: Trogdor, target: Target) -> None:
    """Every record is there once and in order, each transaction is committed, no connection fails."""
    for name in ("plain", "transactional"):
        transactions = {"transactionGenerator": {"type": "uniform", "messagesPerTransaction": AT_ONCE}}
        more = transactions if name == "transactional" else {"inactiveTopics": _topics("idle[0-2]", target)}
        _begin_producing(trogdor, target, name, **more)
    common = {"clientNode": NODE, "bootstrapServers": target.bootstrap}
    load = {"targetMessagesPerSec": FAST, "maxMessages": RECORDS, "valueGenerator": numbers(VALUE_BYTES)}
    topics = {"activeTopics": _topics("round[0-1]", target)}
    trogdor.begin("round", "RoundTripWorkloadSpec", **common, **load, **topics)
    for action in ("CONNECT", "FETCH_METADATA"):
        storm = {"action": action, "numThreads": 2, "targetConnectionsPerSec": CONNECTIONS_A_SECOND}
        trogdor.begin(action, "ConnectionStressSpec", **common, **storm)
    _begin_sustaining(trogdor, target)

    assert [trogdor.end(name)["totalSent"] for name in ("plain", "transactional")] == [RECORDS] * 2
    assert trogdor.end("transactional")["transactionsCommitted"] == RECORDS // AT_ONCE
    assert trogdor.end("round") == {"totalUniqueSent": RECORDS, "totalReceived": RECORDS}
    for action in ("CONNECT", "FETCH_METADATA"):
        reported = trogdor.end_when(action, lambda status: status["totalConnections"] >= CONNECTIONS_MIN)
        assert reported["totalFailedConnections"] == 0, reported
    sustained = trogdor.end_when("sustained", lambda status: all(status.get(key) == SUSTAINED for key in CONNECTIONS))
    assert [sustained[f"total{kind}FailedConnections"] for kind in KINDS] == [0] * 3, sustained
    for name in ("plain", "transactional"):
        _check_records(target.bootstrap, name)


def _topics(pattern: str, target: Target) -> dict[str, object]:
    return {pattern: {"numPartitions": PARTITIONS, "replicationFactor": target.replicas}}


def _begin_producing(trogdor: Trogdor, target: Target, name: str, **more: object) -> None:
    trogdor.begin(
        name,
        "ProduceBenchSpec",
        producerNode=NODE,
        bootstrapServers=target.bootstrap,
        targetMessagesPerSec=FAST,
        maxMessages=RECORDS,
        keyGenerator=numbers(8),
        valueGenerator=numbers(VALUE_BYTES),
        activeTopics=_topics(f"{name}[0-{TOPICS - 1}]", target),
        **more,
    )


def _begin_sustaining(trogdor: Trogdor, target: Target) -> None:
    quick.create_topic(target.bootstrap, "sustained", 3, target.replicas)
    trogdor.begin(
        "sustained",
        "SustainedConnectionSpec",
        clientNode=NODE,
        bootstrapServers=target.bootstrap,
        **{f"{kind.lower()}ConnectionCount": SUSTAINED for kind in KINDS},
        topicName="sustained",
        numThreads=4,
        refreshRateMs=500,
        keyGenerator=numbers(8),
        valueGenerator=numbers(VALUE_BYTES),
    )


def _check_records(bootstrap: str, name: str) -> None:
    """The workload goes round its partitions, so each has every fourth number, in order."""
    partitions = [(f"{name}{topic}", partition) for topic in range(TOPICS) for partition in range(PARTITIONS)]
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for message in quick.read(bootstrap, partitions, RECORDS):
        number = int.from_bytes(message.key(), "little")
        assert message.value() == number.to_bytes(VALUE_BYTES, "little")
        found[message.topic(), message.partition()].append(number)
    steps = {tuple(values) for values in found.values()}
    assert steps == {tuple(range(first, RECORDS, len(partitions))) for first in range(len(partitions))}
