"""`make bench-shortcuts`: what each shortcut saves, by brokers that go without one of them.

    python -m compat_tests.bench.shortcuts [--quick] [--rounds N] [--only WORDS] [--dir DIRECTORY]

A broker with all shortcuts, one without each, and one with none run at the same time on one core; one client at a time
has another core. In each round every broker does every workload once; each round begins with another broker, and the
first does not count. The table has the median rate with all shortcuts, then the median over the rounds of what is left
without each, and the same of the broker's CPU seconds per GB or per million requests. docs/internals/shortcuts.md is
the list.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import truediv
from pathlib import Path
from statistics import median

from compat_tests.bench.load import page_cache
from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.workloads import (
    RAW_BATCH,
    Sample,
    Workload,
    consume,
    fill_consumed_topic,
    kcat_consumer,
    one_record,
    produce,
    raw_batches,
)
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import Cores, scratch_directory, stock_broker
from compat_tests.bench.measuring.report import Table
from compat_tests.support.services import Broker
from kpybroker.config.keys.own import SHORTCUTS

ROUNDS = 7
SCALE, QUICK_SCALE = 0.4, 0.02
SPARE_GB = 12.0
LARGE_BATCH = {"records": 900, "record_bytes": 1000}

WITH_ALL, WITHOUT_ANY = "all", "none"
VALUES = (
    {WITH_ALL: "all"}
    | {name: ",".join(sorted(SHORTCUTS - {name})) for name in sorted(SHORTCUTS)}
    | {WITHOUT_ANY: "none"}
)
"""The value of `kpybroker.shortcuts` of each broker, by what it goes without."""

WORKLOADS = (
    produce("one-record requests, 1 connection, /s", one_record(1)),
    produce("one-record requests, 32 connections, /s", one_record(32)),
    produce("produce, 16 KB batches, MB/s", raw_batches(**RAW_BATCH)),
    produce("produce, 900 KB batches, MB/s", raw_batches(**LARGE_BATCH)),
    consume("kcat fetch, warm, MB/s", kcat_consumer(cold=False)),
)

Samples = dict[tuple[str, str], list[Sample]]
"""By the name of a workload's figure and of the broker."""


@contextmanager
def brokers(directory: Path, cores: Cores) -> Iterator[Mapping[str, Broker]]:
    """One running broker for each of `VALUES`."""
    running: dict[str, Broker] = {}
    try:
        for name, value in VALUES.items():
            overrides = {"kpybroker.shortcuts": value}
            running[name] = stock_broker("kpybroker", directory / name, None, cores.broker, overrides)
            running[name].start()
        yield running
    finally:
        for broker in running.values():
            broker.service.kill()


def measure(
    directory: Path, cores: Cores, clock: command.Clock, rounds: int, scale: float, chosen: list[Workload]
) -> Samples:
    """Every round's samples but those of the first."""
    found: Samples = {}
    with brokers(directory, cores) as running:
        for name, broker in running.items():
            fill_consumed_topic(Run(broker, cores.client, f"fill-{name}", scale))
        for number in range(1 + rounds):
            for workload in chosen:
                figure = workload.figures[0].name
                first = number % len(running)
                names = list(running)
                for name in names[first:] + names[:first]:
                    sample = workload.run(Run(running[name], cores.client, f"shortcuts-{number}", scale))
                    if number:
                        found.setdefault((figure, name), []).append(sample)
                clock.say(f"round {number}: {figure}")
    return found


def page(found: Samples, chosen: list[Workload]) -> str:
    """The table: a line for the rate and one for the CPU of each workload."""
    head = ["", "with all", *(f"without {name}" for name in VALUES if name not in (WITH_ALL, WITHOUT_ANY)), "none"]
    rows = []
    for workload in chosen:
        figure = workload.figures[0].name
        rates = {name: [sample.values[0] for sample in found[figure, name]] for name in VALUES}
        cpu = {name: [sample.cpu or 0.0 for sample in found[figure, name]] for name in VALUES}
        for label, values in ((figure, rates), ("· CPU seconds", cpu)):
            base = values[WITH_ALL]
            ratios = (median(map(truediv, values[name], base)) for name in VALUES if name != WITH_ALL)
            rows.append([label, f"{median(base):,.2f}", *(f"{ratio:.2f}" for ratio in ratios)])
    return Table(head, rows).markdown()


def main() -> int:
    """Measure and print; nothing is written."""
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    scale = QUICK_SCALE if options.quick else SCALE
    chosen = [workload for workload in WORKLOADS if options.only in workload.figures[0].name]
    clock, apart, _ = command.prepare()
    with scratch_directory(options.dir) as scratch:
        page_cache.require_room(scratch, SPARE_GB)
        found = measure(scratch, apart, clock, rounds, scale, chosen)
    print(page(found, chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
