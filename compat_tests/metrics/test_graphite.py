"""Graphite: real carbon stores what we send, and names are those of Yammer's own reporter in Kafka 3.9.1."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.conftest import Launcher
from compat_tests.deps import jars_dir
from compat_tests.metrics.graphite import Carbon, Lines
from compat_tests.support.services import AS_KAFKA_3_9, INTERNAL_PARTITIONS, Broker, started
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually
from kpybroker.config.keys.own import GRAPHITE_REPORTER
from kpybroker.metrics.graphite import DIMENSIONS

SUFFIXES = {"value", *DIMENSIONS.values()}
NOT_MEASURED = {"stddev", "meanRate", "1MinuteRate", "5MinuteRate", "15MinuteRate"}
"""Kafka's suffixes that may be missing: docs/guides/metrics.md says of which MBeans."""
MESSAGES = "kafka.kafka.server.BrokerTopicMetrics.topic.my_topic.MessagesInPerSec.count"


def settings(port: int, reporter: str = GRAPHITE_REPORTER) -> dict[str, str]:
    return {
        "kafka.metrics.reporters": reporter,
        "kafka.metrics.polling.interval.secs": "1",
        "kafka.graphite.metrics.reporter.enabled": "true",
        "kafka.graphite.metrics.host": "127.0.0.1",
        "kafka.graphite.metrics.port": str(port),
    }


def put_load_on(broker: Broker) -> None:
    tools = Tools("3.9.1", broker.bootstrap)
    tools.run("topics", "--create", "--topic", "my.topic")
    tools.run("console-producer", "--topic", "my.topic", stdin="a line\n" * 3)
    reading = ("--topic", "my.topic", "--group", "readers", "--from-beginning", "--max-messages", "3")
    assert "a line" in tools.run("console-consumer", *reading).out


@pytest.fixture(scope="module")
def reports(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """A report of each kind of broker after the same load."""
    found = {}
    for kind in ("kafka", "kpybroker"):
        directory = launcher.directory / f"graphite-{kind}"
        zookeeper = launcher.zookeeper(f"graphite-{kind}") if kind == "kafka" else None
        with started(Lines()) as lines:
            name = "YammerGraphite" if kind == "kafka" else GRAPHITE_REPORTER
            keys = settings(lines.port, name) | ({} if kind == "kafka" else AS_KAFKA_3_9)
            broker = Broker(kind, directory, zookeeper, keys)
            if kind == "kafka":
                add_reporter(broker, tmp_path_factory.mktemp("classes"))
            try:
                broker.start()
                put_load_on(broker)
                found[kind] = lines.next()
            finally:
                broker.service.kill()
    return found


def add_reporter(broker: Broker, classes: Path) -> None:
    """Compile it, and put it on Kafka's class path."""
    jars = f"{jars_dir('kafka-3.9.1')}/*:{jars_dir('graphite-2.2.0')}/*"
    source = Path(__file__).with_name("YammerGraphite.java")
    subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(source)], check=True)
    command = broker.service.command
    at = command.index("kafka.Kafka")
    command[at:at] = ["-cp", f"{jars}:{classes}"]  # of two the later one counts


def by_mbean(report: dict[str, str]) -> dict[str, set[str]]:
    """Name without its suffix -> its suffixes. Directories and addresses, which differ, are written as `*`."""
    found: dict[str, set[str]] = defaultdict(set)
    for name in report:
        mbean, _, suffix = name.rpartition(".")
        found[re.sub(r"(logDirectory|networkProcessor|listener|processor)\.[^.]+", r"\1.*", mbean)].add(suffix)
    return found


@pytest.mark.wide
def test_every_name_is_one_of_kafkas(reports: dict[str, dict[str, str]]) -> None:
    kafkas, ours = by_mbean(reports["kafka"]), by_mbean(reports["kpybroker"])
    assert len(ours) > 150
    assert sorted(ours.keys() - kafkas.keys()) == []


def test_every_suffix_is_one_of_kafkas_and_only_what_is_not_measured_is_missing(
    reports: dict[str, dict[str, str]],
) -> None:
    kafkas, ours = by_mbean(reports["kafka"]), by_mbean(reports["kpybroker"])
    assert set().union(*kafkas.values()) <= SUFFIXES
    for mbean in ours.keys() & kafkas.keys():
        assert ours[mbean] <= kafkas[mbean], mbean
        assert kafkas[mbean] - ours[mbean] <= NOT_MEASURED, mbean


def test_the_values_of_the_load_are_kafkas(reports: dict[str, dict[str, str]]) -> None:
    topic = "kafka.kafka.server.BrokerTopicMetrics.topic.my_topic."
    for name in (f"{topic}MessagesInPerSec.count", "kafka.kafka.controller.KafkaController.GlobalTopicCount.value"):
        assert reports["kpybroker"][name] == reports["kafka"][name]


@pytest.fixture
def carbon(tmp_path: Path) -> Iterator[Carbon]:
    with started(Carbon(tmp_path / "carbon")) as running:
        yield running


def test_carbon_stores_what_is_sent_and_misses_nothing_once_it_is_back(launcher: Launcher, carbon: Carbon) -> None:
    broker = Broker("kpybroker", launcher.directory / "graphite-carbon", None, settings(carbon.port))
    try:
        broker.start()
        put_load_on(broker)
        eventually(lambda: carbon.newest(MESSAGES) == 3, "three messages in carbon")
        partitions = "kafka.kafka.server.ReplicaManager.PartitionCount.value"
        count = INTERNAL_PARTITIONS + 1
        eventually(lambda: carbon.newest(partitions) == count, "the partitions in carbon, with a file for each name")
        carbon.close()
        eventually(lambda: "Metrics do not arrive at Graphite" in broker.service.output(), "a line about it")
        carbon.start()
        eventually(lambda: "Metrics arrive at Graphite" in broker.service.output(), "a line that it is back")
        assert broker.service.output().count("Metrics do not arrive") == 1
    finally:
        broker.service.kill()
