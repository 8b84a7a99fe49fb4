"""`make bench`: both brokers in one run, in alternating rounds, and the table in docs/BENCHMARKS.md.

    python -m compat_tests.bench.run [--quick] [--only WORDS] [--rounds N] [--no-write]

Broker and client have a core each (`taskset`). Both brokers are warmed with records and with small requests; then every
line is run once by both without counting, then in alternating rounds, and the table has the median and the range of
these. Exits with 1 when a bar is missed. The page is written only when the machine had nothing else to do: on a busy
one, a broker of one thread gets a smaller share than one of many.
"""

from __future__ import annotations

import argparse
import sys
import time

from compat_tests.bench.brokers import (
    Cores,
    Machine,
    both_brokers,
    compile_sources,
    memory,
    peak_rss_mb,
    scratch_directory,
)
from compat_tests.bench.report import Result, Results, markdown, write_page
from compat_tests.bench.workloads import (
    CONSUMED_RECORD_BYTES,
    WORKLOADS,
    Run,
    Workload,
    fill_consumed_topic,
    one_record,
)
from compat_tests.support.services import Broker

ROUNDS, QUICK_ROUNDS = 3, 1
WARM_UP_SCALE, WARM_UP_SECONDS = 0.3, 15.0
QUICK_SCALE = 0.3
CONSUMED_RECORDS = 1_000_000
SHARE_OF_OTHERS_MAX = 0.15


class Bench:
    def __init__(self, brokers: dict[str, Broker], cores: Cores, scale: float) -> None:
        self._brokers = brokers
        self._cores = cores
        self._scale = scale
        self._runs = 0

    def here(self, kind: str, scale: float) -> Run:
        self._runs += 1
        return Run(self._brokers[kind], self._cores.client, f"bench-{self._runs}", scale)

    def warm_up(self) -> None:
        """Fill the topic that consumers read, and let the JVM compile what serves small requests."""
        for kind in self._brokers:
            fill_consumed_topic(self.here(kind, 1.0), int(CONSUMED_RECORDS * self._scale))
            one_record(4, WARM_UP_SECONDS)(self.here(kind, self._scale))

    def measure(self, workload: Workload, rounds: int) -> Result:
        kinds = list(self._brokers)
        for kind in kinds:
            workload.run(self.here(kind, self._scale * WARM_UP_SCALE))
        result = Result(workload, {kind: [] for kind in kinds})
        for number in range(rounds):
            # whoever came first last time comes second now
            for kind in kinds if number % 2 == 0 else reversed(kinds):
                result.samples[kind].append(workload.run(self.here(kind, self._scale)))
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of less work, three minutes; writes no page")
    parser.add_argument("--rounds", type=int, help=f"counted rounds [{ROUNDS}; quick: {QUICK_ROUNDS}]")
    parser.add_argument("--scale", type=float, help=f"share of the work of a run [1; quick: {QUICK_SCALE}]")
    parser.add_argument("--only", default="", metavar="WORDS", help="only lines with these words in their name")
    parser.add_argument("--no-write", action="store_true", help="leave docs/BENCHMARKS.md alone")
    parser.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    options = parser.parse_args()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    scale = options.scale or (QUICK_SCALE if options.quick else 1.0)
    workloads = [workload for workload in WORKLOADS if options.only in workload.name]
    results = run(workloads, rounds, scale, options.dir)
    print(markdown(results))
    if results.share_of_others > SHARE_OF_OTHERS_MAX:
        print("bench: the machine was not quiet: the page is left alone, try again", file=sys.stderr)
    elif not (options.quick or options.only or options.no_write):
        write_page(results)
    missed = [result.workload.name for result in results.lines if not result.meets_bar]
    if missed:
        print(f"bench: below the bar: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def run(workloads: list[Workload], rounds: int, scale: float, directory: str | None) -> Results:
    compile_sources()
    cores = Cores.of_this_machine()
    begin = time.monotonic()
    machine = Machine()
    with scratch_directory(directory) as scratch, both_brokers(scratch, cores) as brokers:
        bench = Bench(brokers, cores, scale)
        bench.warm_up()
        lines = []
        for workload in workloads:
            line = bench.measure(workload, rounds)
            print(f"{time.monotonic() - begin:5.0f} s  {line.summary()}", file=sys.stderr, flush=True)
            lines.append(line)
        pids = {kind: broker.service.pid for kind, broker in brokers.items()}
        return Results(
            lines=lines,
            rounds=rounds,
            share_of_others=machine.share_of_others(pids.values()),
            minutes=(time.monotonic() - begin) / 60,
            rss_mb={kind: memory(pid).rss for kind, pid in pids.items()},
            peak_rss_mb={kind: peak_rss_mb(pid) for kind, pid in pids.items()},
            consumed_mb=CONSUMED_RECORDS * scale * CONSUMED_RECORD_BYTES / 1e6,
        )


if __name__ == "__main__":
    sys.exit(main())
