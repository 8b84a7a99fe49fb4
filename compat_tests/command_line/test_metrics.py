"""`kpybroker metrics` next to Kafka's JmxTool, on one real Kafka: the tool by JMX, the command by Jolokia's agent.

And as a process on the broker under test: what ends it, and what it says then.
"""

from __future__ import annotations

import csv
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.conftest import Launcher
from compat_tests.deps import jars_dir
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.jmx import jmx_options, jmx_url, jolokia_agent
from compat_tests.support.services import Broker, jvm, jvm_options
from compat_tests.support.tools import run_process
from tests.support.network.ports import free_port

TOPIC = "watched"
NAMES = {
    "one MBean": ["kafka.server:type=ReplicaManager,name=PartitionCount"],
    "several": ["kafka.server:type=ReplicaManager,name=LeaderCount", "kafka.server:type=KafkaServer,name=BrokerState"],
    "a pattern": [f"kafka.log:type=Log,topic={TOPIC},*"],
    "texts": ["kafka.server:type=app-info,id=0"],
    "a pattern of meters": ["kafka.server:type=BrokerTopicMetrics,*"],
    "a pattern within": ["kafka.server:type=socket-server-metrics,listener=*,networkProcessor=*"],
    "numbers that are none": ["kafka.server:type=group-coordinator-metrics"],
    "quoted": ["kafka.log:type=LogManager,name=LogDirectoryOffline,*"],
}
"""What does not change on a broker at rest, with these attributes."""
STABLE = {
    "a pattern of meters": "Count,EventType,RateUnit",
    "a pattern within": "connection-count,connection-creation-total,failed-authentication-rate",
    "numbers that are none": "partition-load-time-avg,partition-load-time-max,offset-commit-count",
}


class Kafka(NamedTuple):
    """A real one, and its ports for JMX and Jolokia."""

    broker: Broker
    jmx_port: int
    jolokia_port: int

    def jmx_tool(self, *arguments: str) -> str:
        where = ("--jmx-url", jmx_url(self.jmx_port))
        command = jvm("org.apache.kafka.tools.JmxTool", *where, *arguments, options=["-Xmx128m", *jvm_options()])
        return run_process(command).out

    def watch(self, *arguments: str) -> str:
        return CommandLine("").run("metrics", "watch", f"127.0.0.1:{self.jolokia_port}", *arguments).out


@pytest.fixture(scope="module")
def kafka(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    jmx_port, jolokia_port = free_port(), free_port()
    options = [*jmx_options(jmx_port), jolokia_agent(jolokia_port)]
    directory = tmp_path_factory.mktemp("jmx") / "kafka"
    broker = Broker("kafka", directory, launcher.zookeeper("metrics-watch"), {}, options)
    broker.start()
    try:
        quick.create_topic(broker.bootstrap, TOPIC, 2)
        quick.fill(broker.bootstrap, TOPIC, ["one", "two"])
        yield Kafka(broker, jmx_port, jolokia_port)
    finally:
        broker.service.kill()


def _without_time(text: str) -> list[str]:
    """The first column of each line that is neither a header nor a value in a line of its own."""
    return [line.partition(",")[2] if line[:1].isdigit() else line for line in text.splitlines() if line[:5] != "time="]


@pytest.mark.parametrize("case", NAMES)
def test_the_header_and_the_values_are_those_of_jmx_tool(kafka: Kafka, case: str) -> None:
    arguments = [word for name in NAMES[case] for word in ("--object-name", name)]
    arguments += ["--attributes", STABLE[case]] if case in STABLE else []
    theirs, ours = (run(*arguments, "--one-time") for run in (kafka.jmx_tool, kafka.watch))
    assert theirs.startswith('"time","kafka.')
    assert _without_time(ours) == _without_time(theirs)
    assert len(ours.splitlines()) == 2
    assert abs(int(ours.splitlines()[1].split(",")[0]) - int(theirs.splitlines()[1].split(",")[0])) < 600_000


def test_many_mbeans_have_the_same_header(kafka: Kafka) -> None:
    """Not all of Kafka's: for those JmxTool needs two minutes, in which new ones appear."""
    arguments = ["--object-name", "kafka.co*:*", "--object-name", "kafka.cl*:*", "--one-time"]
    headers = [next(csv.reader(run(*arguments).splitlines())) for run in (kafka.jmx_tool, kafka.watch)]
    assert len(headers[0]) > 100
    assert headers[1] == headers[0]


@pytest.mark.parametrize("form", ["properties", "csv", "tsv", "Original"])
def test_each_format_is_that_of_jmx_tool(kafka: Kafka, form: str) -> None:
    arguments = ["--object-name", f"kafka.log:type=Log,topic={TOPIC},*", "--one-time", "--report-format", form]
    arguments += ["--date-format", "yyyy"]
    assert kafka.watch(*arguments) == kafka.jmx_tool(*arguments)


def test_dates_are_written_as_java_does(kafka: Kafka) -> None:
    """The letters that do not change within a day; the others are in `tests/client/metrics`."""
    pattern = "G yy yyyy y M MM MMM MMMM d dd DDD E EEEE u Z X XX XXX z 'o''clock' '' ,"
    arguments = ["--object-name", NAMES["one MBean"][0], "--one-time", "--date-format", pattern]
    assert kafka.watch(*arguments) == kafka.jmx_tool(*arguments)


def test_what_is_not_there_is_said(kafka: Kafka) -> None:
    where = f"127.0.0.1:{kafka.jolokia_port}"
    for arguments, cause in (
        ([where, "--object-name", "kafka.server:type=Nothing"], "no MBean matches kafka.server:type=Nothing"),
        ([where, "--object-name", "kafka.nothing:*"], "no MBean matches kafka.nothing:*"),
        ([f"http://{where}/other"], f"http://{where}/other does not exist (HTTP 404)"),
        ([kafka.broker.bootstrap], f"http://{kafka.broker.bootstrap}/jolokia closed the connection without a response"),
        ([f"https://{kafka.broker.bootstrap}"], f"https://{kafka.broker.bootstrap}/jolokia does not speak TLS"),
    ):
        result = CommandLine("").run("metrics", "watch", *arguments, code=1)
        assert result.out == ""
        first, second = result.err.splitlines()
        assert first.startswith(f"kpybroker: {cause}")
        assert second.startswith("fix: ")


def test_the_names_are_listed(kafka: Kafka) -> None:
    where = f"127.0.0.1:{kafka.jolokia_port}"
    listed = CommandLine("").run("metrics", "list", where, "--object-name", "kafka.log:type=Log,*").out.split("\n")
    assert f"kafka.log:type=Log,name=Size,topic={TOPIC},partition=1" in listed


@pytest.fixture(scope="module")
def metrics_port(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of the broker under test; of Kafka, its Jolokia's, which asks for a login."""
    port = free_port()
    if launcher.kind == "kpybroker":
        broker = launcher.broker(kpybroker_metrics_port=str(port))
        yield port
        broker.service.kill()
        return
    directory = tmp_path_factory.mktemp("watched") / "kafka"
    broker = Broker("kafka", directory, launcher.zookeeper("metrics-port"), {}, [jolokia_agent(port)])
    broker.start()
    yield port
    broker.service.kill()


def test_it_watches_until_ctrl_c(metrics_port: int) -> None:
    name = "kafka.server:type=KafkaServer,name=BrokerState"
    arguments = ["--object-name", name, "--reporting-interval", "50"]
    with CommandLine("").start("metrics", "watch", f"127.0.0.1:{metrics_port}", *arguments) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode() == f'"time","{name}:Value"\n'
        times = [int(process.stdout.readline().removesuffix(b",3\n")) for _ in range(3)]
        assert times == sorted(times)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert all(line.endswith(b",3") for line in out.splitlines())


def test_it_ends_with_the_reader_of_its_pipe(metrics_port: int) -> None:
    arguments = ["--object-name", "kafka.server:type=KafkaServer,name=BrokerState", "--reporting-interval", "10"]
    with CommandLine("").start("metrics", "watch", f"127.0.0.1:{metrics_port}", *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_all_mbeans_are_watched(metrics_port: int) -> None:
    result = CommandLine("").run("metrics", "watch", f"127.0.0.1:{metrics_port}", "--one-time")
    head, row = csv.reader(result.out.splitlines()) if "\n" in result.out else ([], [])
    assert len(head) > 200
    assert len(head) == len(set(head))
    assert len(row) >= len(head)


def test_a_login_comes_from_a_file(launcher: Launcher, tmp_path: Path) -> None:
    """Of Jolokia's agent in a JVM of its own: the shell of Java's, which waits for its input."""
    port = free_port()
    file = tmp_path / "login"
    agent = jolokia_agent(port, "user=alice", "password=alice-secret")
    with subprocess.Popen(
        ["java", "-Xmx128m", agent, "-cp", f"{jars_dir('kafka-3.9.1')}/*", "org.apache.zookeeper.ZooKeeperMain"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            words = ["metrics", "watch", f"127.0.0.1:{port}", "--object-name", "java.lang:type=Runtime", "--one-time"]
            words += ["--attributes", "SpecVersion"]
            for text, cause in ((None, "asks for a login (HTTP 401)"), ("alice:wrong", "does not accept the login")):
                if text is not None:
                    file.write_text(text)
                more = [] if text is None else ["--auth-file", str(file)]
                result = CommandLine("").run(*words, *more, "--wait", "0" if text else "10", code=1)
                assert cause in result.err.splitlines()[-2]
            file.write_text("alice:alice-secret\n")
            result = CommandLine("").run(*words, "--auth-file", str(file))
            assert result.out.splitlines()[1].endswith(",17")
        finally:
            process.kill()
