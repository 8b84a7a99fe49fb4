"""`make bench-kafka-4`: the first screen's lines once more, next to Kafka 4.3.1 as one node in KRaft mode.

    python -m compat_tests.bench.kafka_4 [--quick] [--only WORDS] [--rounds N] [--no-write]

The same lines as in `make bench`, run and counted in the same way (`compat_tests/bench/run.py`), a core for the broker
and one for the client; the start is that of `make bench-start`, in a directory that `StorageTool format` has prepared
before the clock runs. The page is written only when the machine had nothing else to do.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import cast

from compat_tests.bench.load.page_cache import require_room
from compat_tests.bench.load.workloads import PINNED, Workload
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    BROKER_HEAP,
    JVM_PERFORMANCE,
    KAFKA_4,
    OVERRIDES,
    Cores,
    Kinds,
    both_brokers_of_kafka_4,
    scratch_directory,
)
from compat_tests.bench.measuring.costs import memory
from compat_tests.bench.measuring.report import Fact, Part, Result, facts_table, results_table
from compat_tests.bench.run import EXPLANATION, ROOM_GB, ROUNDS, SETTLE_S, Bench, Schedule
from compat_tests.bench.start import Started, popen, start_kpybroker, timed
from compat_tests.support.kraft import KraftBroker

LINES = (
    "Java produce 1 KB, acks=1",
    "Java produce 1 KB, acks=all, idempotent",
    "Java produce 1 KB, lz4",
    "raw produce, 16 KB batches of 1 KB",
    "Java consume 1 KB, tail",
    "one-record requests, 4 connections, 1 in flight",
    "one-record requests, 32 connections, 1 in flight",
    "end-to-end, one record at a time, p50",
)
MINUTES = 15.0
STARTS = 3


def start_kafka(directory: Path) -> Started:
    kafka = KraftBroker(directory, jvm_options=[*BROKER_HEAP, *JVM_PERFORMANCE])
    kafka.format()
    return timed(lambda: [popen(kafka.service.command, directory)], kafka.port, tries=5)


def starts(directory: Path) -> list[Fact]:
    kafkas = [start_kafka(directory / f"kafka-{n}") for n in range(STARTS)]
    ours = [start_kpybroker(directory / f"kpybroker-{n}") for n in range(STARTS)]
    seconds = [statistics.median(start.seconds for start in group) for group in (kafkas, ours)]
    return [Fact("from start to the first message", "s", *seconds)]


def measure(
    directory: Path, cores: Cores, plan: Schedule, workloads: list[Workload]
) -> tuple[list[Result], list[Fact]]:
    with both_brokers_of_kafka_4(directory, cores, OVERRIDES) as kinds:
        time.sleep(SETTLE_S)
        idle = {kind: memory(broker.service.pid).rss for kind, broker in kinds.items()}
        bench = Bench(cast(Kinds, kinds), cores, plan)
        bench.warm_up()
        results = bench.measure_all(workloads)
    return results, [Fact("resident memory, idle", "MB", idle["kafka"], idle["kpybroker"])]


def main() -> int:
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    lines = [one for one in PINNED if one.figures[0].name in LINES and options.only in one.figures[0].name]
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        facts = starts(scratch)
        clock, apart, _ = command.prepare()
        plan = Schedule(clock, rounds, 0.2 if options.quick else 1.0, MINUTES, len(lines))
        results, held = measure(scratch / "apart", apart, plan, lines)
    conditions = clock.conditions(rounds)
    parts: list[Part] = [
        f"{conditions.sentence()} {EXPLANATION}",
        "### A core for the broker, another one for the client",
        results_table(results, KAFKA_4),
        "### Start and memory",
        facts_table([*facts, *held], KAFKA_4),
    ]
    return command.finish(options, "bench-kafka-4", conditions, parts, [])


if __name__ == "__main__":
    sys.exit(main())
