"""`make bench`: both brokers in one run, in alternating rounds, and the tables in docs/internals/benchmarks.

    python -m compat_tests.bench.run [--quick] [--only WORDS] [--rounds N] [--minutes N] [--no-write]

First broker and client have a core each (`taskset`); then both brokers are started again with nothing pinned for the
lines that the client's one core limits. Both are warmed with records and with small requests, and every line is run
once by both without counting. Then the rounds alternate until the last three of each broker agree within 5 %, as long
as the time allows, and these three count; the table says where they do not agree. Exits with 1 when a floor of
DESIGN §7 is missed. The page is written only when the machine had nothing else to do: on a busy one, a broker of one
thread gets a smaller share than one of many.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.page_cache import require_room
from compat_tests.bench.load.workloads import PINNED, UNPINNED, Workload, fill_consumed_topic, one_record
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import Cores, Kinds, both_brokers, idle_connections, scratch_directory
from compat_tests.bench.measuring.costs import come_to_rest, loop_stall, memory, peak_rss_mb
from compat_tests.bench.measuring.report import Conditions, Fact, Part, Result, facts_table, results_table

ROUNDS, ROUNDS_MAX = 3, 6
MINUTES = 50.0
WARM_UP_SCALE, WARM_UP_SECONDS = 0.2, 8.0
QUICK_SCALE = 0.2
ROOM_GB = 25.0
SETTLE_S = 2.0
IDLE_CONNECTIONS = 1000
IDLE_MB_MAX, HIGHEST_MB_MAX, STALL_P99_9_MS_MAX = 60.0, 150.0, 50.0
EXPLANATION = (
    "MB are 10^6 bytes of record values; CPU is the broker's user and system time, seconds per GB or per million "
    "requests. The higher the ratio to Kafka the better, the lower the share of its CPU. Floors are those of the "
    "design; a line without one is only reported. *Rounds agree*: within 5 % for both brokers, or by how much "
    "they differ."
)


class Bench:
    """One pair of brokers and what is asked of them."""

    def __init__(self, kinds: Kinds, cores: Cores, plan: Schedule) -> None:
        self._kinds = kinds
        self._cores = cores
        self._plan = plan
        self._runs = 0

    def here(self, kind: str, scale: float = 1.0) -> Run:
        self._runs += 1
        return Run(self._kinds[kind], self._cores.client, f"bench-{self._runs}", self._plan.scale * scale)

    def fill(self) -> None:
        """The topic that consumers read."""
        for kind in self._kinds:
            fill_consumed_topic(self.here(kind))

    def warm_up(self) -> None:
        """Let the JVM compile what serves small requests."""
        self.fill()
        for kind in self._kinds:
            one_record(4, full_seconds=WARM_UP_SECONDS)(self.here(kind))

    def measure_all(self, workloads: Sequence[Workload]) -> list[Result]:
        results = []
        for workload in workloads:
            result = self._measure(workload)
            for line in result.lines:
                self._plan.clock.say(line.summary())
            results.append(result)
        return results

    def _measure(self, workload: Workload) -> Result:
        for kind in self._kinds:
            workload.run(self.here(kind, WARM_UP_SCALE))
        rounds = self._plan.rounds
        result = Result(workload, {kind: [] for kind in self._kinds}, rounds)
        on_time = self._plan.next_line_due()
        for number in range(max(ROUNDS_MAX, rounds)):
            if number >= rounds and (result.agrees or not on_time()):
                break
            # the one that came first last time comes second now
            for kind in self._kinds if number % 2 == 0 else reversed(list(self._kinds)):
                come_to_rest(broker.service.pid for broker in self._kinds.values())
                result.samples[kind].append(workload.run(self.here(kind)))
        return result


class Schedule:
    """How much is done, and in which time: more rounds than needed only while the lines are on schedule."""

    def __init__(self, clock: command.Clock, rounds: int, scale: float, minutes: float, workloads: int) -> None:
        self.clock = clock
        self.rounds = rounds
        self.scale = scale
        self._seconds_each = minutes * 60 / max(workloads, 1)
        self._lines = 0

    def next_line_due(self) -> Callable[[], bool]:
        self._lines += 1
        due_s = self._seconds_each * self._lines
        return lambda: self.rounds > 1 and self.clock.seconds() < due_s


def main() -> int:
    parser = command.parser(__doc__, ROUNDS)
    parser.add_argument("--scale", type=float, help=f"share of the work of a run [1; quick: {QUICK_SCALE}]")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"no extra rounds beyond these [{MINUTES:g}]")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    scale = options.scale or (QUICK_SCALE if options.quick else 1.0)
    pinned, unpinned = (_chosen(group, options.only) for group in (PINNED, UNPINNED))
    clock, apart, shared = command.prepare()
    plan = Schedule(clock, rounds, scale, options.minutes, len(pinned) + len(unpinned))
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        pinned_results, facts = measure_pinned(scratch / "apart", apart, plan, pinned)
        unpinned_results = measure_unpinned(scratch / "shared", shared, plan, unpinned) if unpinned else []
    conditions = clock.conditions(rounds)
    missed = [name for result in pinned_results for name in result.missed]
    missed += [f"{name}, nothing pinned" for result in unpinned_results for name in result.missed]
    missed += [fact.name for fact in facts if fact.missed]
    parts = page(conditions, pinned_results, unpinned_results, facts)
    return command.finish(options, "bench", conditions, parts, missed)


def _chosen(group: Sequence[Workload], words: str) -> list[Workload]:
    return [workload for workload in group if any(words in figure.name for figure in workload.figures)]


def measure_pinned(
    directory: Path, cores: Cores, plan: Schedule, workloads: Sequence[Workload]
) -> tuple[list[Result], list[Fact]]:
    with both_brokers(directory, cores) as kinds:
        time.sleep(SETTLE_S)
        idle_mb = {kind: memory(broker.service.pid).rss for kind, broker in kinds.items()}
        bench = Bench(kinds, cores, plan)
        bench.warm_up()
        loop_stall(kinds["kpybroker"])  # the start is not what is measured
        results = bench.measure_all(workloads)
        stall = loop_stall(kinds["kpybroker"])
        highest_mb = {}
        for kind, broker in kinds.items():
            with idle_connections(broker.bootstrap, IDLE_CONNECTIONS):
                one_record(4)(bench.here(kind))
                highest_mb[kind] = peak_rss_mb(broker.service.pid)
    facts = [
        Fact("resident memory, idle", "MB", idle_mb["kafka"], idle_mb["kpybroker"], IDLE_MB_MAX),
        Fact(
            f"highest resident memory, after all lines and with {IDLE_CONNECTIONS:,} idle connections",
            "MB",
            highest_mb["kafka"],
            highest_mb["kpybroker"],
            HIGHEST_MB_MAX,
        ),
        Fact("loop stall, p99.9 of the iterations", "ms", None, stall.p99_9_ms, STALL_P99_9_MS_MAX),
        Fact("loop stall, longest", "ms", None, stall.longest_ms),
    ]
    return results, facts


def measure_unpinned(directory: Path, cores: Cores, plan: Schedule, workloads: Sequence[Workload]) -> list[Result]:
    with both_brokers(directory, cores) as kinds:
        bench = Bench(kinds, cores, plan)
        bench.warm_up()
        return bench.measure_all(workloads)


def page(conditions: Conditions, pinned: list[Result], unpinned: list[Result], facts: list[Fact]) -> list[Part]:
    return [
        f"{conditions.sentence()} {EXPLANATION}",
        "### A core for the broker, another one for the client",
        results_table(pinned),
        "### Nothing pinned: broker and client share all cores",
        results_table(unpinned),
        "### The broker's process over the first group of lines",
        facts_table(facts),
    ]


if __name__ == "__main__":
    sys.exit(main())
