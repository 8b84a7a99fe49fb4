"""The clients that load a broker, each run once on the clients' cores."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from compat_tests.bench.measuring.brokers import CLIENT_HEAP, JVM_PERFORMANCE, pinned
from compat_tests.bench.measuring.costs import cpu_seconds
from compat_tests.deps import CACHE, ROOT, jars_dir
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process

CLIENT_DEADLINE_S = 300.0
LOG_LINES_SHOWN = 40
LOG4J = ROOT / "compat_tests" / "jvm" / "log4j-tools.properties"
END_TO_END = Path(__file__).with_name("EndToEnd.java")
IDLE_PRIORITY = ["chrt", "--idle", "0"]
"""For clients that only make work for the broker, so that they take no time from the one that is measured."""

CONSUMED_AT = "%Y-%m-%d %H:%M:%S:%f"
PRODUCED = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Run:
    """Where and how long: `scale` is the share of the full amount of work."""

    broker: Broker
    client_cores: tuple[int, ...]
    topic: str
    scale: float

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def count(self, full: int) -> int:
        return max(int(full * self.scale), 1)

    def seconds(self, full: float) -> float:
        return max(full * self.scale, 0.5)

    def cpu(self) -> float:
        return cpu_seconds(self.broker.service.pid)

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        return self.broker.data_dir / f"{topic}-{partition}"

    # --- running one

    def client(self, command: list[str]) -> str:
        return run_process(pinned(self.client_cores, command), deadline_s=CLIENT_DEADLINE_S).out

    @contextmanager
    def running(self, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Runs as long as the block; one that has ended by then must have ended well."""
        with subprocess.Popen(pinned(self.client_cores, command), stdout=subprocess.PIPE) as process:
            try:
                yield process
                assert process.poll() in (None, 0), f"exit code {process.returncode}: {command}"
            finally:
                process.kill()

    def python(self, module: str, *arguments: str) -> dict[str, float]:
        result: dict[str, float] = json.loads(self.client([sys.executable, "-m", module, *arguments]))
        return result

    def raw(self, **options: Any) -> dict[str, float]:
        return self.python(*raw_arguments(self.bootstrap, self.topic, **options))

    @contextmanager
    def own_topic(self, partitions: int = 1, **config: Any) -> Iterator[str]:
        create_topic(self.bootstrap, self.topic, partitions, **config)
        try:
            yield self.topic
        finally:
            admin = admin_client(self.bootstrap)
            try:
                admin.delete_topics([self.topic])[self.topic].result(timeout=30)
            except KafkaException as error:
                said = "\n".join(self.broker.service.output().splitlines()[-LOG_LINES_SHOWN:])
                raise AssertionError(f"{self.topic} at {self.broker.service.name}: {error}\n{said}") from error


def raw_arguments(bootstrap: str, topic: str, **options: Any) -> list[str]:
    """Of `raw_producer`, its module first; True is an option without a value."""
    given = []
    for name, value in options.items():
        given += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return ["compat_tests.bench.load.raw_producer", bootstrap, topic, *given]


def java(main_class: str, *arguments: str, class_path: str = "", jars: str = "kafka-3.9.1") -> list[str]:
    options = [*CLIENT_HEAP, *JVM_PERFORMANCE, f"-Dlog4j.configuration=file:{LOG4J}"]
    return ["java", *options, "-cp", f"{jars_dir(jars)}/*{class_path}", main_class, *arguments]


def producer_performance(
    bootstrap: str, topic: str, records: int, record_bytes: int, properties: dict[str, object]
) -> list[str]:
    props = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
    return java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={bootstrap}", *props),
    )


def produced_reports(client: subprocess.Popen[bytes]) -> Iterator[int]:
    """How many records each 5 s of a running `kafka-producer-perf-test` had, as soon as it says so."""
    assert client.stdout is not None
    for line in client.stdout:
        if found := PRODUCED.match(line.decode()):
            yield int(found[1])
    raise AssertionError("the producer ended by itself")


@dataclass(frozen=True, slots=True)
class Consumed:
    """What `kafka-consumer-perf-test` says: its rate is without the time that joining the group takes."""

    count: int
    records_per_s: float
    ended_ns: int

    @staticmethod
    def read(out: str) -> Consumed:
        fields = [field.strip() for field in out.strip().splitlines()[-1].split(",")]
        ended = datetime.strptime(fields[1], CONSUMED_AT)
        return Consumed(int(fields[4]), float(fields[9]), int(ended.timestamp() * 1e9))


def consumed_rate(out: str, warm_up: float) -> float:
    """Records a second from the moment when `warm_up` of them were read, by what `detailed` statistics say.

    A short run (a warm-up, or one of `--quick`) may have one report after that moment: then by its last two.
    """
    reports = []
    for line in out.strip().splitlines():
        fields = [field.strip() for field in line.split(",")]
        reports.append((datetime.strptime(fields[0], CONSUMED_AT), int(fields[4])))
    assert len(reports) > 1, f"too few reports: {out}"
    warm = [report for report in reports if report[1] >= warm_up]
    if len(warm) < 2:
        warm = reports[-2:]
    (began, first), (ended, last) = warm[0], warm[-1]
    return (last - first) / (ended - began).total_seconds()


def consumer_performance(
    bootstrap: str, topic: str, records: int, group: str | None = None, detailed: bool = False
) -> list[str]:
    return java(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--messages", str(records)),
        *("--hide-header", "--timeout", "20000", *(["--group", group] if group else [])),
        *(["--show-detailed-stats", "--reporting-interval", "250"] if detailed else []),
    )


def console_consumer(bootstrap: str, topic: str) -> list[str]:
    return java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
    )


def kcat(bootstrap: str, topic: str, *options: str) -> list[str]:
    return ["kcat", "-C", "-q", "-b", bootstrap, "-t", topic, *options]


def seconds_of(command: list[str]) -> list[str]:
    """A command that prints how long another one took, whose output no one sees."""
    return [
        sys.executable,
        "-c",
        "import subprocess, sys, time; begin = time.perf_counter();"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
        "print(time.perf_counter() - begin)",
        *command,
    ]


@cache
def end_to_end_classes() -> Path:
    """EndToEnd.java, compiled."""
    target = CACHE / "jvm" / "bench"
    run_process(["javac", "-cp", f"{jars_dir('kafka-3.9.1')}/*", "-d", str(target), str(END_TO_END)])
    return target


def end_to_end(bootstrap: str, topic: str, warm_up: int, count: int) -> list[str]:
    numbers = (str(warm_up), str(count))
    return java("EndToEnd", bootstrap, topic, *numbers, class_path=f":{end_to_end_classes()}")


# --- reading what a consumer prints while it follows


def first_output(consumer: subprocess.Popen[bytes]) -> None:
    """Wait for the first that it prints: from now on it follows."""
    assert isinstance(consumer.stdout, BufferedReader)
    assert consumer.stdout.peek(1), "the consumer ended"


def ages_s(consumer: subprocess.Popen[bytes], count: int) -> Iterator[float]:
    """How old each of `count` records is when it is printed, after the first line: they begin with the time of their
    making."""
    assert consumer.stdout is not None
    consumer.stdout.readline()
    for _ in range(count):
        line = consumer.stdout.readline()
        now_ns = time.time_ns()
        assert line, "the consumer ended"
        yield (now_ns - int(line[:20])) / 1e9
