"""`make bench-scale`: what the cores of one machine make of kpybroker as one process and as two, next to Kafka.

    python -m compat_tests.bench.scale [--quick] [--rounds N] [--only WORDS] [--dir DIRECTORY]

Kafka (one JVM, on its ZooKeeper), kpybroker with one process, and `kpybroker server FILE --processes 2` run all the
time; nothing is pinned, the clients included, as on a developer's machine. Two raw producers at a time, each with half
of the connections and a topic of its own: with two processes each broker leads one of the topics. Each line is run once
by all without counting, then the rounds alternate, and so does who begins. The table has the medians; the exit code is
1 where two processes make fewer requests than Kafka does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka.admin import NewTopic

from compat_tests.bench.load.clients import raw_arguments
from compat_tests.bench.load.workloads import RAW_BATCH
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import compile_sources, scratch_directory, stock_broker, stock_zookeeper
from compat_tests.bench.measuring.report import Table, number
from compat_tests.support.quick import admin_client
from compat_tests.support.services import Broker
from tests.support.network.ports import free_ports_in_a_row

ROUNDS = 5
SECONDS, QUICK_SECONDS, WARM_UP_S = 5.0, 0.5, 1.0
CLIENT_DEADLINE_S = 300.0
ADMIN_DEADLINE_S = 60.0
PRODUCERS = 2
FLOOR = 1.0
KAFKA, ONE, TWO = "Kafka 3.9.1", "1 process", "2 processes"


@dataclass(frozen=True, slots=True)
class Line:
    """What is measured: `unit` is of the sum over the producers; `floor` is that of two processes to Kafka."""

    name: str
    unit: str
    connections: int
    options: Mapping[str, Any]
    floor: float | None = None


LINES = (
    Line("one-record requests, 32 connections", "count", 32, {}, FLOOR),
    Line("one-record requests, 200 connections", "count", 200, {}, FLOOR),
    Line("16 KB batches, 8 connections, MB/s", "megabytes", 8, RAW_BATCH),
)


@dataclass(frozen=True, slots=True)
class SetUp:
    """Running brokers. `addresses` by broker id."""

    name: str
    addresses: Mapping[int, str]

    @contextmanager
    def topics(self, prefix: str) -> Iterator[list[tuple[str, str]]]:
        """A topic of one partition for each producer, and the address of its leader; the brokers take turns."""
        ids = [list(self.addresses)[n % len(self.addresses)] for n in range(PRODUCERS)]
        admin = admin_client(next(iter(self.addresses.values())))
        wanted = [NewTopic(f"{prefix}-{n}", 1, replica_assignment=[[ids[n]]]) for n in range(PRODUCERS)]
        for made in admin.create_topics(wanted).values():
            made.result(ADMIN_DEADLINE_S)
        try:
            yield [(self.addresses[ids[n]], f"{prefix}-{n}") for n in range(PRODUCERS)]
        finally:
            for gone in admin.delete_topics([topic.topic for topic in wanted]).values():
                gone.result(ADMIN_DEADLINE_S)

    def run(self, line: Line, prefix: str, seconds: float) -> float:
        """What all producers together make a second."""
        options: dict[str, Any] = {
            "connections": line.connections // PRODUCERS,
            "seconds": seconds,
            "warm_up": WARM_UP_S,
        }
        with self.topics(prefix) as topics, ExitStack() as stack:
            running = [
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-m", *raw_arguments(address, topic, **options, **line.options)],
                        stdout=subprocess.PIPE,
                    )
                )
                for address, topic in topics
            ]
            done = [json.loads(one.communicate(timeout=CLIENT_DEADLINE_S)[0]) for one in running]
        return float(sum(one[line.unit] / one["seconds"] for one in done))


@contextmanager
def set_ups(directory: Path) -> Iterator[list[SetUp]]:
    """All three, running."""
    with ExitStack() as stack:
        zookeeper = stock_zookeeper(directory / "zookeeper")
        zookeeper.start()
        stack.callback(zookeeper.stop)
        made = []
        for name, kind, connect, count in (
            (KAFKA, "kafka", zookeeper.connect, 1),
            (ONE, "kpybroker", None, 1),
            (TWO, "kpybroker", None, 2),
        ):
            port = free_ports_in_a_row(count)
            keys = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
            broker = stock_broker(kind, directory / name.replace(" ", "-"), connect, overrides=keys)
            broker.port = broker.client_port = port
            stack.callback(broker.service.kill)
            _start(broker, count)
            made.append(SetUp(name, {number: f"127.0.0.1:{port + number}" for number in range(count)}))
        yield made


def _start(broker: Broker, count: int) -> None:
    if count == 1:
        broker.start()
        return
    broker.service.command += ["--processes", str(count)]
    broker.service.start(lambda output: "kpybroker ready at " in output)


def table(found: Mapping[tuple[str, str], list[float]], lines: list[Line]) -> tuple[Table, list[str]]:
    """A row for each line, and what misses its floor."""
    rows, missed = [], []
    for line in lines:
        kafka, one, two = (median(found[line.name, name]) for name in (KAFKA, ONE, TWO))
        cells = [_cell(found[line.name, name]) for name in (KAFKA, ONE, TWO)]
        rows.append([line.name, *cells, f"{one / kafka:.2f}", f"{two / kafka:.2f}"])
        if line.floor is not None and two / kafka < line.floor:
            missed.append(f"{line.name}: {two / kafka:.2f} x Kafka")
    return Table(["", KAFKA, ONE, TWO, "1 process x", "2 processes x"], rows), missed


def _cell(values: list[float]) -> str:
    return f"{number(median(values))} ({number(min(values))} to {number(max(values))})"


def main() -> int:
    """Measure and print; nothing is written."""
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    lines = [line for line in LINES if options.only in line.name]
    compile_sources()
    clock = command.Clock()
    found: dict[tuple[str, str], list[float]] = {}
    with scratch_directory(options.dir) as scratch, set_ups(scratch) as running:
        for turn in range(1 + rounds):
            for line in lines:
                first = turn % len(running)
                for one in running[first:] + running[:first]:
                    value = one.run(line, f"scale-{turn}", seconds)
                    if turn:
                        found.setdefault((line.name, one.name), []).append(value)
                clock.say(f"round {turn}: {line.name}")
    made, missed = table(found, lines)
    print(made.markdown())
    for text in missed:
        print(f"bench-scale: missed: {text}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
