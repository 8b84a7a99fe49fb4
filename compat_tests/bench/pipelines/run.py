"""`make bench-pipelines`: rows a second, CPU and memory of each pipeline on 1, 2 and 4 executors, next to real Kafka.

    python -m compat_tests.bench.pipelines.run [--quick] [--rounds N] [--rows N] [--batch N] [--executors 1,2,4]
                                           [--only NAME] [--profile] [--one-broker] [--dir D]

Both brokers run all the time and have the same records in topics of four partitions, and nothing is pinned. Spark is a
standalone cluster of executors with one core each, a new one for each number of executors. In its one driver all
pipelines run, each first over some rows, at most 40 000, from one broker, which compiles and is not counted, and then
over all rows, in about five batches (or those of `--batch`), to topics. Brokers take turns, and so does who begins. CPU
is that of the process trees in that run: of the broker; and of Spark, which is driver, executors and their Python.
Memory is the proportional set size at the end of a run: of the broker; and of a driver and of executors that may have
run other pipelines before. The line `source` is no pipeline: its records are read, and nothing is done with them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Producer

from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    Kinds,
    both_brokers,
    compile_sources,
    scratch_directory,
)
from compat_tests.bench.measuring.costs import memory
from compat_tests.bench.measuring.report import Table, number
from compat_tests.bench.pipelines.input import INPUTS
from compat_tests.bench.pipelines.profile import profile, shares
from compat_tests.deps import ROOT
from compat_tests.spark.pipelines.standalone import Standalone, standalone
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic

ROWS, QUICK_ROWS, ROUNDS = 200_000, 5_000, 2
EXECUTORS = (1, 2, 4)
PARTITIONS, BATCHES, WARM_ROWS = 4, 5, 40_000
JVM = "-XX:+UseSerialGC"
KINDS = ("kafka", "kpybroker")


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one run: records a second; CPU seconds of the broker and of Spark; MB of broker, driver and executors."""

    rate: float
    broker_cpu: float
    spark_cpu: float
    broker_mb: float
    driver_mb: float
    executors_mb: float


def tree_cpu(pid: int) -> float:
    """User and system time of a process, of those that it has started, and of those of them that have ended."""
    total = 0.0
    root = psutil.Process(pid)
    for process in (root, *root.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # its parent has its time now
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def fill(brokers: Kinds, topic: str, name: str, rows: int) -> None:
    """The same records in each broker: `rows` of them, over all partitions by key, or in turn."""
    producers = []
    for broker in brokers.values():
        create_topic(broker.bootstrap, topic, PARTITIONS)
        settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "compression.type": "lz4"}
        producers.append(Producer({**settings, **QUIET}))
    for n, (key, value, headers) in enumerate(INPUTS[name].records(rows, 1)):
        place = {} if key is not None else {"partition": n % PARTITIONS}
        for producer in producers:
            while True:
                try:
                    producer.produce(topic, value, key, headers=list(headers), **place)
                    break
                except BufferError:
                    producer.poll(1.0)
            producer.poll(0)
    for producer in producers:
        assert producer.flush(DEADLINE_S) == 0


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver that reads what it is asked to, one topic after the other."""

    process: subprocess.Popen[str]
    log: Path

    def run(self, name: str, bootstrap: str, topic: str) -> dict[str, float]:
        """What the driver says of a run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name} {bootstrap} {topic}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        assert said, self.log.read_text()
        done: dict[str, float] = json.loads(said)
        return done


@contextmanager
def driver(batch: int, spark: Standalone, place: Path) -> Iterator[Driver]:
    """It ends with the block."""
    whole = [sys.executable, "-m", "compat_tests.bench.pipelines.driver", spark.master, str(batch), str(place)]
    env = {**spark.environment(), "PYTHONPATH": str(ROOT)}
    log = place / "driver.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=place, env=env
        )
    try:
        yield Driver(process, log)
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Bench:
    """Both brokers, and a cluster of `executors` with its driver."""

    executors: int
    brokers: Kinds
    cluster: Standalone
    driver: Driver

    def measure(self, name: str, kind: str, rows: int, counts: Counter[str] | None) -> Measured:
        """One run. `counts`: of a profile, which is made with it."""
        broker = self.brokers[kind]
        pids = (broker.service.pid, self.driver.process.pid, self.cluster.services[1].pid)
        before = [tree_cpu(pid) for pid in pids]
        with nullcontext() if counts is None else profile(pids[1:], counts):
            done = self.driver.run(name, broker.bootstrap, f"{name}-many")
        after = [tree_cpu(pid) for pid in pids]
        assert done["read"] == rows, done
        cpu = [late - early for late, early in zip(after, before, strict=True)]
        return Measured(rows / done["seconds"], cpu[0], cpu[1] + cpu[2], *(memory(pid).pss for pid in pids))


def table(found: Mapping[tuple[str, int, str], Sequence[Measured]]) -> Table:
    """A row for each pipeline and number of executors: medians of each broker."""
    kinds = [kind for kind in KINDS if any(kind == measured for *_, measured in found)]
    head = ["pipeline", "executors", *(f"rows/s, {KIND_NAMES[kind]}" for kind in kinds), *["ratio"] * (len(kinds) - 1)]
    head += ["broker CPU s", "Spark CPU s", "broker MB", "driver MB", "executors MB"]
    rows = []
    of = {(name, executors) for name, executors, _ in found}
    for name, executors in sorted(of, key=lambda one: (list(INPUTS).index(one[0]), one[1])):
        both = [found[name, executors, kind] for kind in kinds]
        rates = [statistics.median(one.rate for one in values) for values in both]
        cells = [name, str(executors), *(_cell([one.rate for one in values]) for values in both)]
        cells += [f"{later / rates[0]:.2f}" for later in rates[1:]]
        for figure in ("broker_cpu", "spark_cpu", "broker_mb", "driver_mb", "executors_mb"):
            medians = [statistics.median(getattr(one, figure) for one in values) for values in both]
            cells.append(" / ".join(map(number, medians)))
        rows.append(cells)
    return Table(head, rows)


def _cell(values: Sequence[float]) -> str:
    text = number(statistics.median(values))
    return text if len(values) == 1 else f"{text} ({number(min(values))} to {number(max(values))})"


@dataclass(slots=True)
class Found:
    """By pipeline, number of executors and broker: what was measured; and by the first two, what threads did."""

    measured: dict[tuple[str, int, str], list[Measured]] = field(default_factory=dict)
    profiles: dict[tuple[str, int], Counter[str]] = field(default_factory=dict)


def run_rounds(name: str, bench: Bench, options: argparse.Namespace, clock: command.Clock, found: Found) -> None:
    """All rounds of a pipeline on one cluster."""
    counts = found.profiles.setdefault((name, bench.executors), Counter()) if options.profile else None
    kinds = KINDS[-1:] if options.one_broker else KINDS
    begins = len(found.measured) // len(kinds)
    bench.driver.run(name, bench.brokers[kinds[begins % len(kinds)]].bootstrap, f"{name}-few")
    for turn in range(begins, begins + options.rounds):
        for kind in kinds if turn % 2 == 0 else reversed(kinds):
            values = bench.measure(name, kind, options.rows, counts)
            found.measured.setdefault((name, bench.executors, kind), []).append(values)
            clock.say(f"{name}, {bench.executors} executors, {kind}: {number(values.rate)} rows/s")


def run_all(brokers: Kinds, options: argparse.Namespace, clock: command.Clock, found: Found) -> None:
    """Each pipeline on each cluster."""
    names = [name for name in INPUTS if options.only in name]
    for name in names:
        fill(brokers, f"{name}-few", name, min(options.rows, WARM_ROWS))
        fill(brokers, f"{name}-many", name, options.rows)
    clock.say(f"{options.rows} rows of each are in both brokers")
    batch = options.batch or -(-options.rows // BATCHES)
    for executors in map(int, options.executors.split(",")):
        place = options.scratch / f"executors-{executors}"
        place.mkdir(parents=True)
        with standalone(place / "spark", executors, JVM) as cluster, driver(batch, cluster, place) as running:
            for name in names:
                run_rounds(name, Bench(executors, brokers, cluster, running), options, clock, found)
        print(table(found.measured).markdown(), flush=True)


def main() -> int:
    """Measure and print; nothing is written."""
    parser = command.parser(__doc__, ROUNDS)
    parser.add_argument("--rows", type=int, help=f"of each pipeline's topic [{ROWS}; quick: {QUICK_ROWS}]")
    parser.add_argument("--batch", type=int, help="records of a batch at most [a fifth of the rows]")
    parser.add_argument("--executors", default=",".join(map(str, EXECUTORS)), help="numbers with commas between them")
    text = "also say what Spark's threads do; it costs some of the rate"
    parser.add_argument("--profile", action="store_true", help=text)
    text = "read from kpybroker only: for memory with much data"
    parser.add_argument("--one-broker", action="store_true", help=text)
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    compile_sources()
    clock, found = command.Clock(), Found()
    with scratch_directory(options.dir) as options.scratch, both_brokers(options.scratch, Cores.shared()) as brokers:
        run_all(brokers, options, clock, found)
        conditions = clock.conditions(options.rounds)
    stolen = f"the host took away {conditions.share_stolen:.0%} of what was wanted, {conditions.minutes:.0f} minutes"
    rows = f"{options.rows} rows of each, in batches of {options.batch or 'a fifth of them'}"
    print(f"{rows}; rounds: {options.rounds}; {stolen}.\n")
    print(table(found.measured).markdown())
    for (name, executors), counts in found.profiles.items():
        print(f"{name}, {executors} executors: {shares(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
