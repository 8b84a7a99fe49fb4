"""Tools of 0.8 and 0.10 that only look: StateChangeLogMerger reads logs, JmxTool reads a JVM's MBeans.

Next to them `kpybroker log merge-state-changes` and `kpybroker metrics watch`, for brokers without a JVM.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.conftest import Launcher
from compat_tests.field.era import VERSIONS, Era
from compat_tests.support import quick
from compat_tests.support.cluster import Cluster
from compat_tests.support.command_line import CommandLine
from compat_tests.support.jmx import jmx_options, jmx_url, jolokia_agent
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

pytestmark = pytest.mark.wide

STATE_CHANGE = "(state.change.logger)"
MBEANS = (
    "kafka.server:type=ReplicaManager,name=PartitionCount",
    "kafka.server:type=ReplicaManager,name=LeaderCount",
    "kafka.server:type=KafkaServer,name=BrokerState",
)
"""With one attribute each, `Value`, which does not change on a broker at rest."""


def logged(cluster: Cluster, topic: str, directory: Path) -> str:
    """The state changes that each broker logs while this topic is made, as files in `directory`; their names."""
    for broker_id, broker in cluster.brokers.items():
        entity = ("--entity-type", "broker-loggers", "--entity-name", str(broker_id))
        change = ("--alter", "--add-config", "state.change.logger=TRACE")
        cluster.tools.run("configs", *entity, *change)
        assert broker.service.running
    cluster.create(topic, "1:2,2:1")
    files = []
    for broker_id, broker in cluster.brokers.items():

        def kept(broker: Broker = broker) -> list[str]:
            return [line for line in broker.service.output().splitlines() if line.endswith(STATE_CHANGE)]

        eventually(lambda kept=kept: any(topic in line for line in kept()), "it is logged")  # type: ignore[misc]
        file = directory / f"state-change.log.{broker_id}"
        file.write_text("\n".join(kept()) + "\n")
        files.append(str(file))
    return ",".join(files)


def test_the_merger_finds_no_partition_of_today(cluster: Cluster, era: Era, name: str, tmp_path: Path) -> None:
    """StateChangeLogMerger looks for `[topic,0]`. A broker since Kafka 1.0 writes `topic-0`, Kafka no less than ours,
    so the tool finds nothing about the topic; our command does. Of lines in the old form both print the same."""
    files = logged(cluster, name, tmp_path)
    assert era.run("StateChangeLogMerger", "--logs", files, "--topic", name).out == ""
    command = CommandLine(cluster.bootstrap)
    ours = command.run("log", "merge-state-changes", "--logs", files, "--topic", name).out.splitlines()
    assert {f"{name}-{partition}" for partition in (0, 1)} <= set(re.findall(rf"{re.escape(name)}-\d", " ".join(ours)))

    old = tmp_path / "old"
    stamps = [f"2015-01-01 00:00:0{n},00{n}" for n in range(6)]
    for number in (0, 1):
        lines = [
            f"[{stamp}] TRACE Broker {number} changed partition [{name},{n % 3}] {STATE_CHANGE}"
            for n, stamp in enumerate(stamps)
            if n % 2 == number
        ]
        old.with_suffix(f".{number}").write_text("\n".join(lines) + "\n")
    which = ("--logs", f"{old}.0,{old}.1", "--topic", name, "--partitions", "0,2")
    merged = era.run("StateChangeLogMerger", *which, "--end-time", stamps[4]).lines
    assert [re.findall(r"^\[(\S+ \S+)\]", line) for line in merged] == [[stamps[n]] for n in (0, 2, 3)]
    assert command.run("log", "merge-state-changes", *which, "--end-time", stamps[4]).out.splitlines() == merged


class Watched(NamedTuple):
    """A Kafka 3.9.1, its port for JMX and that of its Jolokia agent."""

    jmx: str
    jolokia: str


@pytest.fixture(scope="module")
def watched(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """For either `--broker`: only a JVM has what JmxTool connects to."""
    jmx_port, jolokia_port = free_port(), free_port()
    options = [*jmx_options(jmx_port), jolokia_agent(jolokia_port)]
    directory = tmp_path_factory.mktemp("jmx") / "kafka"
    broker = Broker("kafka", directory, launcher.zookeeper("field-jmx"), {}, options)
    try:
        broker.start()
        quick.create_topic(broker.bootstrap, "watched", 3)
        quick.fill(broker.bootstrap, "watched", ["one"], 2)
        yield Watched(jmx_url(jmx_port), f"127.0.0.1:{jolokia_port}")
    finally:
        broker.service.kill()


@pytest.mark.parametrize("version", VERSIONS)
def test_jmx_tool_prints_what_our_command_prints(
    cluster: Cluster, watched: Watched, version: str, tmp_path: Path
) -> None:
    """The header, and each row but for its time: JmxTool by JMX, `kpybroker metrics watch` by Jolokia, of one Kafka."""
    which = [word for name in MBEANS for word in ("--object-name", name)]
    ours = CommandLine("").run("metrics", "watch", watched.jolokia, *which, "--one-time").out.splitlines()
    where = ("--jmx-url", watched.jmx, "--reporting-interval", "100")
    with Era(version, cluster).running(tmp_path, "JmxTool", *where, *which) as tool:

        def rows() -> list[str]:
            return [line for line in tool.said.splitlines()[:-1] if line.startswith('"time"') or line[:1].isdigit()]

        tool.wait_until(lambda: len(rows()) >= 4, "three rows of values")
        header, *values = csv.reader(rows())
    assert next(csv.reader(ours)) == header
    assert sorted(header) == sorted(["time", *(f"{name}:Value" for name in MBEANS)])
    found = [dict(zip(header, row, strict=True)) for row in values]
    assert [int(row["time"]) for row in found] == sorted(int(row["time"]) for row in found)
    for row in found:
        assert [row[f"{name}:Value"] for name in MBEANS] == ["3", "3", "3"]
        assert list(row.values())[1:] == ours[1].split(",")[1:]


@pytest.mark.parametrize("version", VERSIONS)
def test_jmx_tool_at_a_port_that_is_not_jmx(cluster: Cluster, version: str, tmp_path: Path) -> None:
    """A broker's own port: that of 0.8.2.2 ends with an exception at once, that of 0.10.2.2 tries ten times."""
    where = jmx_url(cluster.brokers[1].port)
    result = Era(version, cluster).run("JmxTool", "--jmx-url", where, "--object-name", MBEANS[0], check=False)
    assert result.code == 1
    assert ("Exception in thread" if version == "0.8.2.2" else "after 10 retries") in result.err
    assert result.out == ""
