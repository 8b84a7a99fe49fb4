"""What is measured: one entry a line of the table. Each runs a stock client once and says how fast it was."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from compat_tests.bench.brokers import CLIENT_HEAP, JVM_PERFORMANCE, cpu_seconds, pinned
from compat_tests.deps import ROOT, jars_dir
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process

CLIENT_DEADLINE_S = 300.0
LOG4J = ROOT / "compat_tests" / "jvm" / "log4j-tools.properties"
CONSUMED_TOPIC = "bench-consume"
CONSUMED_RECORD_BYTES = 1024

PRODUCED = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)
MEAN_LATENCY = re.compile(r"Avg latency: ([\d.]+) ms")
P99_LATENCY = re.compile(r"99th = (\d+),")


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one client. `value` is in the workload's unit; `cpu` are the broker's seconds per GB, or per million
    requests."""

    value: float
    cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Where and how long: `scale` is the share of the full amount of work."""

    broker: Broker
    client_core: int
    topic: str
    scale: float

    def count(self, full: int) -> int:
        return max(int(full * self.scale), 1)

    def client(self, command: list[str]) -> str:
        return run_process(pinned(self.client_core, command), deadline_s=CLIENT_DEADLINE_S).out

    def java(self, main_class: str, *arguments: str) -> str:
        options = [*CLIENT_HEAP, *JVM_PERFORMANCE, f"-Dlog4j.configuration=file:{LOG4J}"]
        return self.client(["java", *options, "-cp", f"{jars_dir('kafka-3.9.1')}/*", main_class, *arguments])

    def python(self, module: str, *arguments: str) -> dict[str, float]:
        result: dict[str, float] = json.loads(self.client([sys.executable, "-m", module, *arguments]))
        return result

    def cpu(self) -> float:
        return cpu_seconds(self.broker.service.pid)


@dataclass(frozen=True, slots=True)
class Workload:
    """A line of the table. `bar` is the least ratio to Kafka; with `less_is_better` the ratio is turned round."""

    name: str
    unit: str
    run: Callable[[Run], Sample]
    bar: float = 0.8
    less_is_better: bool = False


# --- producing ------------------------------------------------------------------------------------------------


def java_producer(record_bytes: int, full: int, **properties: object) -> Callable[[Run], Sample]:
    """`kafka-producer-perf-test`; MB are 10^6 bytes of record values."""

    def run(here: Run) -> Sample:
        create_topic(here.broker.bootstrap, here.topic)
        props = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
        before = here.cpu()
        out = here.java(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", here.topic, "--num-records", str(here.count(full)), "--record-size", str(record_bytes)),
            *("--throughput", "-1", "--producer-props", f"bootstrap.servers={here.broker.bootstrap}", *props),
        )
        used = here.cpu() - before
        count, rate = PRODUCED.findall(out)[-1]
        delete_topic(here)
        return Sample(float(rate) * record_bytes / 1e6, used / (int(count) * record_bytes / 1e9))

    return run


def python_producer(library: str, full: int, record_bytes: int = 1024) -> Callable[[Run], Sample]:
    def run(here: Run) -> Sample:
        create_topic(here.broker.bootstrap, here.topic)
        before = here.cpu()
        done = here.python(
            "compat_tests.bench.python_producer",
            *(library, here.broker.bootstrap, here.topic, str(here.count(full)), str(record_bytes)),
        )
        used = here.cpu() - before
        delete_topic(here)
        megabytes = done["count"] * record_bytes / 1e6
        return Sample(megabytes / done["seconds"], used / (megabytes / 1000))

    return run


def delete_topic(here: Run) -> None:
    admin = admin_client(here.broker.bootstrap)
    admin.delete_topics([here.topic])[here.topic].result(timeout=30)


# --- consuming ------------------------------------------------------------------------------------------------


def fill_consumed_topic(here: Run, records: int) -> None:
    """What every consumer reads: 1 KB records in batches of 16 KB, still in the page cache."""
    create_topic(here.broker.bootstrap, CONSUMED_TOPIC)
    here.java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", CONSUMED_TOPIC, "--num-records", str(records), "--record-size", str(CONSUMED_RECORD_BYTES)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={here.broker.bootstrap}", "acks=1"),
    )


def java_consumer(full: int) -> Callable[[Run], Sample]:
    """`kafka-consumer-perf-test`, its rate without the time that joining the group takes."""

    def run(here: Run) -> Sample:
        before = here.cpu()
        out = here.java(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", here.broker.bootstrap, "--topic", CONSUMED_TOPIC),
            *("--messages", str(here.count(full)), "--hide-header", "--timeout", "20000"),
        )
        used = here.cpu() - before
        fields = [field.strip() for field in out.strip().splitlines()[-1].split(",")]
        count, fetch_records_per_s = int(fields[4]), float(fields[9])
        assert count >= here.count(full), f"{count} records read: {out}"
        return Sample(fetch_records_per_s * CONSUMED_RECORD_BYTES / 1e6, used / (count * CONSUMED_RECORD_BYTES / 1e9))

    return run


def kcat_consumer(full: int) -> Callable[[Run], Sample]:
    """The whole run of kcat, its start too, into /dev/null."""

    def run(here: Run) -> Sample:
        count = here.count(full)
        before = here.cpu()
        timed = here.client(
            [
                sys.executable,
                "-c",
                "import subprocess, sys, time; begin = time.perf_counter();"
                "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
                "print(time.perf_counter() - begin)",
                *("kcat", "-C", "-q", "-b", here.broker.bootstrap, "-t", CONSUMED_TOPIC),
                *("-p", "0", "-o", "beginning", "-c", str(count)),
            ]
        )
        used = here.cpu() - before
        megabytes = count * CONSUMED_RECORD_BYTES / 1e6
        return Sample(megabytes / float(timed), used / (megabytes / 1000))

    return run


# --- one record at a time -------------------------------------------------------------------------------------


def one_record(connections: int, full_seconds: float = 3.0) -> Callable[[Run], Sample]:
    def run(here: Run) -> Sample:
        create_topic(here.broker.bootstrap, here.topic)
        before = here.cpu()
        seconds = max(full_seconds * here.scale, 0.5)
        done = here.python(
            "compat_tests.bench.one_record", here.broker.bootstrap, here.topic, str(connections), str(seconds)
        )
        used = here.cpu() - before
        delete_topic(here)
        # the warm-up of the client is in the seconds used, and nearly as many requests per second in it
        share = done["seconds"] / (done["seconds"] + 0.5)
        return Sample(done["count"] / done["seconds"], used * share / (done["count"] / 1e6))

    return run


def end_to_end_latency(figure: re.Pattern[str], full: int = 5_000) -> Callable[[Run], Sample]:
    """`kafka-e2e-latency`: one record, acks=1, until the consumer has it. The tool gives percentiles in whole ms."""

    def run(here: Run) -> Sample:
        create_topic(here.broker.bootstrap, here.topic)
        out = here.java(
            "org.apache.kafka.tools.EndToEndLatency",
            *(here.broker.bootstrap, here.topic, str(here.count(full)), "1", "100"),
        )
        delete_topic(here)
        found = figure.search(out)
        assert found is not None, out
        return Sample(float(found.group(1)))

    return run


WORKLOADS = [
    Workload("produce 100 B, 16 KB batches, acks=1", "MB/s", java_producer(100, 2_500_000, acks=1)),
    Workload(
        "produce 100 B, 256 KB batches, acks=1",
        "MB/s",
        java_producer(100, 4_000_000, acks=1, batch_size=262_144, linger_ms=10),
    ),
    Workload("produce 1 KB, acks=1", "MB/s", java_producer(1024, 600_000, acks=1)),
    Workload(
        "produce 1 KB, acks=all, idempotent",
        "MB/s",
        java_producer(1024, 600_000, acks="all", enable_idempotence="true"),
    ),
    Workload("produce 1 KB, lz4", "MB/s", java_producer(1024, 600_000, acks=1, compression_type="lz4")),
    Workload("produce 1 KB, zstd", "MB/s", java_producer(1024, 400_000, acks=1, compression_type="zstd")),
    Workload("confluent-kafka produce 1 KB, acks=1", "MB/s", python_producer("confluent", 300_000)),
    Workload("kafka-python produce 1 KB, acks=1", "MB/s", python_producer("kafka-python", 60_000)),
    Workload("Java consume 1 KB, warm replay", "MB/s", java_consumer(1_000_000)),
    Workload("kcat consume 1 KB, warm replay", "MB/s", kcat_consumer(1_000_000)),
    Workload("one-record requests, 1 connection", "requests/s", one_record(1)),
    Workload("one-record requests, 4 connections", "requests/s", one_record(4)),
    Workload("one-record requests, 32 connections", "requests/s", one_record(32), bar=0.4),
    Workload("end-to-end latency, mean", "ms", end_to_end_latency(MEAN_LATENCY), less_is_better=True),
    Workload("end-to-end latency, p99", "ms", end_to_end_latency(P99_LATENCY), less_is_better=True),
]
