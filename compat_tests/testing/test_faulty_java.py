"""Kafka's own producer and consumer meet faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.support.tools import Tools
from kpybroker.testing import Broker

COUNT = 20
VALUES = [str(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def running() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def faulty(running: Broker) -> Iterator[Broker]:
    yield running
    running.reset()


@pytest.fixture
def tools(faulty: Broker) -> Tools:
    return Tools("3.9.1", faulty.bootstrap_servers)


def test_an_idempotent_producer_delivers_each_message_once(faulty: Broker, tools: Tools, tmp_path: Path) -> None:
    faulty.create_topic("produced", partitions=1)
    settings = tmp_path / "producer.properties"
    settings.write_text("enable.idempotence=true\nretries=1000\nretry.backoff.ms=20\nbatch.size=0\nlinger.ms=0\n")
    faults = [
        faulty.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="produced", times=2),
        faulty.faults.error("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", topic="produced", nth=4),
        faulty.faults.disconnect("Produce", "after", topic="produced", nth=6),
        faulty.faults.reset("Produce", "after", topic="produced", nth=8),
        faulty.faults.truncate("Produce", 11, topic="produced", nth=10),
        faulty.faults.slice("Produce", 9, topic="produced", skip=12),
        faulty.faults.delay("Produce", 30, jitter_ms=20, topic="produced", probability=0.5, seed=7),
    ]
    arguments = [
        "--topic",
        "produced",
        "--max-messages",
        str(COUNT),
        "--acks",
        "-1",
        "--producer.config",
        str(settings),
    ]
    tools.run("verifiable-producer", *arguments)
    faulty.assert_records("produced", values=VALUES)
    assert all(fault.hits >= 1 for fault in faults)


def test_errors_of_the_coordinator_heal(faulty: Broker, tools: Tools) -> None:
    faulty.create_topic("grouped", partitions=1)
    faulty.produce("grouped", VALUES)
    faults = [
        faulty.faults.error("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", group="readers", times=2),
        faulty.faults.error("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", group="readers", times=2),
        faulty.faults.error("SyncGroup", "REBALANCE_IN_PROGRESS", group="readers", once=True),
        faulty.faults.error("OffsetFetch", "NOT_COORDINATOR", group="readers", once=True),
        faulty.faults.error("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="grouped", once=True),
        faulty.faults.disconnect("Fetch", topic="grouped", skip=1, once=True),
        faulty.faults.error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", group="readers", once=True),
    ]
    result = tools.run("console-consumer", *_reading("grouped", "readers"))
    assert result.lines == VALUES, result
    assert all(fault.hits >= 1 for fault in faults)
    faulty.assert_committed("readers", "grouped", {0: COUNT})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("crc", "Record is corrupt (stored crc"),
        ("length", "Record size 5 is less than the minimum record overhead (14)"),
        ("magic", "Invalid magic found in record: 99"),
        ("record", "Invalid record size: expected to read -1 bytes"),
    ],
)
def test_a_corrupt_batch_ends_the_consumer(faulty: Broker, tools: Tools, damage: str, reason: str) -> None:
    faulty.create_topic(damage, partitions=1)
    faulty.produce(damage, VALUES)
    fault = faulty.faults.add(match={"api": "Fetch", "topic": damage}, act={"corrupt_batch": damage})
    failed = tools.run("console-consumer", *_reading(damage, f"{damage}-1"), check=False)
    assert fault.hits >= 1
    assert reason in failed.err + failed.out, failed
    assert not set(VALUES) & set(failed.lines)
    fault.remove()
    assert tools.run("console-consumer", *_reading(damage, f"{damage}-2")).lines == VALUES


def _reading(topic: str, group: str) -> list[str]:
    number = str(COUNT)
    return ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", number, "--timeout-ms", "20000"]
