"""`make bench-cluster`: what three brokers take that replicate everything, Kafka's and kpybroker's, in turns.

    python -m compat_tests.bench.cluster [--quick] [--only WORDS] [--rounds N] [--no-write]

Two clusters of three processes each on one ZooKeeper; nothing is pinned, for there are not cores enough. Topics have
three replicas and `min.insync.replicas=2`, every line waits for all of them (acks=all). Both clusters run all the time;
each line is run once by both without counting, then the rounds alternate, and so does who begins.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compat_tests.bench.load.clients import PRODUCED, producer_performance, raw_arguments
from compat_tests.bench.load.workloads import KILOBYTE, Figure, Sample, Workload
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    pinned,
    scratch_directory,
    stock_broker,
    stock_zookeeper,
)
from compat_tests.bench.measuring.command import Clock
from compat_tests.bench.measuring.costs import cpu_seconds
from compat_tests.bench.measuring.report import Conditions, Part, Result, results_table
from compat_tests.support.quick import admin_client, create_topic, fill
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process

ROUNDS = 3
QUICK_SCALE = 0.2
WARM_UP_SCALE = 0.2
THROUGHPUT_FLOOR = 0.8
PARTITIONS = 3
CLIENT_DEADLINE_S = 300.0
OVERRIDES = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
EXPLANATION = (
    "MB are 10^6 bytes of record values, each written three times; CPU is that of the three brokers together. "
    "Nothing is pinned."
)


@dataclass(frozen=True, slots=True)
class Here:
    """Three brokers, a topic's name, and how much of the full work is done."""

    brokers: tuple[Broker, ...]
    cores: Cores
    topic: str
    scale: float

    @property
    def bootstrap(self) -> str:
        return self.brokers[0].bootstrap

    def cpu(self) -> float:
        return sum(cpu_seconds(broker.service.pid) for broker in self.brokers)

    def client(self, arguments: list[str]) -> str:
        return run_process(pinned(self.cores.client, arguments), deadline_s=CLIENT_DEADLINE_S).out

    @contextmanager
    def own_topic(self, partitions: int) -> Iterator[None]:
        create_topic(self.bootstrap, self.topic, partitions, replicas=3)
        try:
            yield
        finally:
            admin = admin_client(self.bootstrap)
            admin.delete_topics([self.topic])[self.topic].result(timeout=30)

    def leader(self) -> str:
        """The address of who leads partition 0, and does so: it has taken a record."""
        fill(self.bootstrap, self.topic, ["first"])
        found = admin_client(self.bootstrap).list_topics(self.topic, timeout=30)
        node = found.brokers[found.topics[self.topic].partitions[0].leader]
        return f"{node.host}:{node.port}"


def java_producer(record_bytes: int, full: int, **properties: object) -> Callable[[Here], Sample]:
    """`kafka-producer-perf-test`, idempotent as it comes."""

    def run(here: Here) -> Sample:
        count = max(int(full * here.scale), 1)
        with here.own_topic(PARTITIONS):
            before = here.cpu()
            settings = {"acks": "all", **properties}
            out = here.client(producer_performance(here.bootstrap, here.topic, count, record_bytes, settings))
            used = here.cpu() - before
        sent, rate = PRODUCED.findall(out)[-1]
        return Sample((float(rate) * record_bytes / 1e6,), used / (int(sent) * record_bytes / 1e9))

    return run


def raw_producer(unit_per_s: str, partitions: int = 1, **options: object) -> Callable[[Here], Sample]:
    """Ready-made requests to the leader of one of the partitions; `unit_per_s` is what of its report counts."""

    def run(here: Here) -> Sample:
        with here.own_topic(partitions):
            seconds = {"seconds": 3 * here.scale, "warm_up": 0.5}
            arguments = raw_arguments(here.leader(), here.topic, acks=-1, **seconds, **options)
            done = json.loads(here.client([sys.executable, "-m", *arguments]))
        return Sample((done[unit_per_s] / done["seconds"],))

    return run


def _line(name: str, unit: str, run: Callable[[Here], Sample]) -> tuple[Workload, Callable[[Here], Sample]]:
    def never(_: object) -> Sample:
        raise AssertionError("a line of a cluster is run by its own bench")

    return Workload((Figure(name, unit, THROUGHPUT_FLOOR),), never), run


RAW_BATCHES = {"records": 16, "record_bytes": KILOBYTE, "in_flight": 5}
LINES = (
    _line("Java producer, 1 KB", "MB/s", java_producer(KILOBYTE, 150_000)),
    _line("Java producer, 100 B", "MB/s", java_producer(100, 800_000)),
    _line("Java producer, 1 KB, lz4", "MB/s", java_producer(KILOBYTE, 150_000, compression_type="lz4")),
    _line("raw batches of 16 KB, 5 in flight", "MB/s", raw_producer("megabytes", **RAW_BATCHES)),
    _line("one record, 1 connection", "1/s", raw_producer("count")),
    _line("one record, 16 connections", "1/s", raw_producer("count", connections=16)),
    _line("one record, 1 connection, 1,000 partitions", "1/s", raw_producer("count", partitions=1_000)),
)


@contextmanager
def both_clusters(directory: Path) -> Iterator[dict[str, tuple[Broker, ...]]]:
    zookeeper = stock_zookeeper(directory / "zookeeper")
    zookeeper.start()
    clusters: dict[str, tuple[Broker, ...]] = {}
    try:
        for kind in KIND_NAMES:
            clusters[kind] = tuple(
                stock_broker(
                    kind,
                    directory / f"{kind}-{number}",
                    f"{zookeeper.connect}/{kind}",
                    overrides={**OVERRIDES, "broker.id": str(number)},
                )
                for number in (1, 2, 3)
            )
            for broker in clusters[kind]:
                broker.start()
        yield clusters
    finally:
        for brokers in clusters.values():
            for broker in brokers:
                broker.service.kill()
        zookeeper.stop()


def measure(
    clusters: dict[str, tuple[Broker, ...]], cores: Cores, clock: Clock, rounds: int, scale: float, words: str
) -> list[Result]:
    results: list[Result] = []
    for workload, run in LINES:
        if words not in workload.figures[0].name:
            continue
        result = Result(workload, {kind: [] for kind in clusters}, rounds)
        for number in range(-1, rounds):
            for kind in clusters if number % 2 == 0 else reversed(list(clusters)):
                share = scale if number >= 0 else scale * WARM_UP_SCALE
                topic = f"bench-{len(results)}-{number + 1}"
                sample = run(Here(clusters[kind], cores, topic, share))
                if number >= 0:
                    result.samples[kind].append(sample)
        clock.say(result.lines[0].summary())
        results.append(result)
    return results


def page(conditions: Conditions, results: list[Result]) -> list[Part]:
    return [f"{conditions.sentence()} {EXPLANATION}", results_table(results)]


def main() -> int:
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    clock, _, shared = command.prepare()
    with scratch_directory(options.dir) as scratch, both_clusters(scratch) as clusters:
        results = measure(clusters, shared, clock, rounds, QUICK_SCALE if options.quick else 1.0, options.only)
    conditions = clock.conditions(rounds)
    missed = [name for result in results for name in result.missed]
    return command.finish(options, "bench-cluster", conditions, page(conditions, results), missed)


if __name__ == "__main__":
    sys.exit(main())
