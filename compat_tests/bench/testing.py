"""`make bench-testing`: what a test suite pays for its broker, next to real Kafka's.

    python -m compat_tests.bench.testing [--times 9] [--write]

The same tests run with the pytest plugin on a broker of their own and, with `--kafka-bootstrap`, on real Kafka. What
counts as a test's overhead is its set-up and its end: the broker, a topic, a group, and clients, made and closed; the
body is left out. Kafka's first test begins when its broker is ready, kpybroker's when there is none yet.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer

from compat_tests.bench.measuring.brokers import compile_sources, scratch_directory, stock_broker, stock_zookeeper
from compat_tests.bench.measuring.report import Table, write_page
from compat_tests.bench.start import wait_for_port
from compat_tests.deps import ROOT
from kpybroker.testing import Broker

TESTS = 40
KAFKA_STARTS = 3
GROUPS = 9
DEADLINE_S = 60.0

CONFTEST = """
import json, os

times = []

def pytest_runtest_logreport(report):
    times.append([report.nodeid, report.when, report.duration])

def pytest_sessionfinish(session):
    with open(os.environ["TIMES"], "w") as file:
        json.dump(times, file)
"""
A_TOPIC = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_topic(number, kafka_broker, kafka_topic, group_id):
    assert kafka_topic
"""
CLIENTS = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_clients(number, kafka_topic, kafka_producer, kafka_consumer):
    kafka_producer.produce(kafka_topic, b"value")
    assert kafka_producer.flush(30) == 0
    assert kafka_consumer.poll(30).value() == b"value"
"""


class Times(list[float]):
    """Seconds of several runs of one thing."""

    def cell(self, scale: float = 1000, digits: int = 0) -> str:
        low, middle, high = (f"{value * scale:.{digits}f}" for value in (min(self), statistics.median(self), max(self)))
        return f"{middle} ({low} to {high})"


def timed(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


# --- what pytest adds


def overheads(directory: Path, tests: str, *options: str) -> list[float]:
    """Seconds of set-up and end of each test of a run, in order."""
    directory.mkdir()
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
    environment = {**os.environ, "TIMES": str(directory / "times.json"), "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    found: dict[str, float] = {}
    for test, when, seconds in json.loads((directory / "times.json").read_text()):
        found[test] = found.get(test, 0.0) + (seconds if when != "call" else 0.0)
    # The last test ends the session's broker as well.
    return list(found.values())[:-1]


def plugin(scratch: Path, runs: int, *options: str) -> dict[str, Times]:
    """`runs` runs of each kind of test: the first test, and the median of the further ones."""
    found = {name: Times() for name in ("first", "topic", "clients")}
    for _ in range(runs):
        for name, tests in (("topic", A_TOPIC), ("clients", CLIENTS)):
            first, *further = overheads(scratch / uuid.uuid4().hex, tests.format(count=TESTS), *options)
            found[name].append(statistics.median(further))
            if name == "topic":
                found["first"].append(first)
    return found


# --- groups


def first_messages(servers: str, count: int) -> Times:
    """From a consumer of a new group to its first record, which is there already."""
    producer = Producer({"bootstrap.servers": servers})
    found = Times()
    for _ in range(count):
        topic = uuid.uuid4().hex
        producer.produce(topic, b"value")
        assert producer.flush(DEADLINE_S) == 0
        settings = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
        begin = time.perf_counter()
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        message = consumer.poll(DEADLINE_S)
        found.append(time.perf_counter() - begin)
        assert message is not None
        assert message.value() == b"value", message.error()
        consumer.close()
    return found


# --- the two brokers


@contextmanager
def kafka(directory: Path, starts: Times) -> Iterator[str]:
    """ZooKeeper and Kafka as their download starts them; adds the time until a client can create a topic."""
    zookeeper = stock_zookeeper(directory / "zookeeper")
    broker = stock_broker("kafka", directory / "kafka", zookeeper.connect)
    begin = time.perf_counter()
    try:
        zookeeper.start()
        broker.start()
        wait_for_port(broker.port)
        starts.append(time.perf_counter() - begin)
        yield f"127.0.0.1:{broker.port}"
    finally:
        broker.service.kill()
        zookeeper.stop()


def import_time(runs: int) -> Times:
    """Of `import kpybroker.testing`, in processes of their own, without what Python itself takes to start."""
    code = "import time; begin = time.perf_counter(); import kpybroker.testing; print(time.perf_counter() - begin)"
    command = [sys.executable, "-c", code]
    return Times(float(subprocess.check_output(command, text=True, cwd=ROOT)) for _ in range(runs))


def ours(scratch: Path, runs: int) -> dict[str, Times]:
    found = {"import": import_time(runs), "start": Times(), "stop": Times(), "group": Times(), "groups": Times()}
    found |= {"snapshot": Times(), "restore": Times()}
    for _ in range(runs):
        broker = Broker()
        found["start"].append(timed(broker.start))
        messages = first_messages(broker.bootstrap_servers, 3)
        found["group"].append(messages[0])
        found["groups"] += messages[1:]
        begin = time.perf_counter()
        snapshot = broker.snapshot()
        found["snapshot"].append(time.perf_counter() - begin)
        found["restore"].append(timed(partial(broker.restore, snapshot)))
        found["stop"].append(timed(broker.stop))
    return found | plugin(scratch, runs // 3)


def kafkas(scratch: Path) -> dict[str, Times]:
    found = {
        "start": Times(),
        "group": Times(),
        "groups": Times(),
        "first": Times(),
        "topic": Times(),
        "clients": Times(),
    }
    for number in range(KAFKA_STARTS):
        with kafka(scratch / f"kafka-{number}", found["start"]) as servers:
            messages = first_messages(servers, 3)
            found["group"].append(messages[0])
            found["groups"] += messages[1:]
            for name, times in plugin(scratch, 1, "--kafka-bootstrap", servers).items():
                found[name] += times
    return found


ROWS = (
    ("import", "`import kpybroker.testing`", 50),
    ("start", "start, until it serves", None),
    ("stop", "stop", None),
    ("first", "first test of a run with its topic, the start included where there is one", 600),
    ("topic", "each further test with a topic and a group of its own", 20),
    ("clients", "each further test with a producer and a consumer too", None),
    ("group", "first record of the first group of a broker", 300),
    ("groups", "first record of each further group", 300),
    ("snapshot", "snapshot of the whole broker", None),
    ("restore", "restore", None),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=9, help="runs of kpybroker [9]")
    parser.add_argument("--write", action="store_true", help="write docs/internals/benchmarks and docs/speed/data")
    options = parser.parse_args()
    compile_sources()
    with scratch_directory(None) as scratch:
        reference, found = kafkas(scratch), ours(scratch, options.times)
    rows, missed = [], False
    for name, what, bar in ROWS:
        is_missed = bar is not None and statistics.median(found[name]) * 1000 > bar
        missed = missed or is_missed
        cell = found[name].cell() + (" **missed**" if is_missed else "")
        rows.append([what, reference[name].cell() if name in reference else "", cell, "" if bar is None else f"{bar}"])
    table = Table(["", "Kafka 3.9.1, ms", "kpybroker, ms", "at most"], rows)
    print(table.markdown())
    if options.write:
        day = datetime.now(UTC).date().isoformat()
        conditions = (
            f"{day}, {os.cpu_count()} cores, nothing pinned. Median of {options.times} brokers of kpybroker (and of "
            f"{options.times // 3} runs of pytest with {TESTS} tests) and of {KAFKA_STARTS} starts of ZooKeeper and "
            "Kafka, with the least and the most. confluent-kafka is the client."
        )
        write_page("bench-testing", [conditions, "### A test and its broker", table])
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
