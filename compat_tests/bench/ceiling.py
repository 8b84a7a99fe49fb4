"""`make bench-ceiling`: how much stock clients with a core of their own could make of any broker.

    python -m compat_tests.bench.ceiling [--quick] [--only WORDS] [--rounds N] [--no-write]

Lines of `make bench` with Kafka, with kpybroker, and with a broker that does next to nothing, in alternating rounds:
the Java producers with one that only responds (`responses_only`), whose rate is about what the client's core can do;
the replays with one that only sends (`sends_only`), whose CPU is about what the kernel takes for any broker.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compat_tests.bench.limits import responses_only, sends_only
from compat_tests.bench.load.page_cache import require_room
from compat_tests.bench.load.workloads import (
    CONSUMED_TOPIC,
    JAVA_WARM_UP_REPORTS,
    PINNED,
    java_producers,
)
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    Kinds,
    both_brokers,
    pinned,
    scratch_directory,
    stock_broker,
)
from compat_tests.bench.measuring.report import Part, Result, Table
from compat_tests.bench.run import QUICK_SCALE, ROOM_GB, Bench, Schedule
from compat_tests.deps import ROOT
from compat_tests.support.services import Broker, Service

ROUNDS = 3
RESPONSES_ONLY, SENDS_ONLY = responses_only.READY, sends_only.READY
PRODUCERS = (
    "MB are 10^6 bytes of record values. *Responds only*: a broker that takes a request off its socket, keeps nothing "
    "of it, and responds. *Most*: its rate to Kafka's, which is about the highest that a broker can have."
)
REPLAYS = (
    "*Sends only*: a broker that looks up which bytes the response to a Fetch has, and gives them to `sendfile`, which "
    "waits in the kernel. CPU is the broker's, seconds per GB. *Least*: its CPU to Kafka's, which is about the lowest "
    "that a broker can have."
)


def _start(broker: Broker, directory: Path, cores: Cores, module: str, *arguments: str) -> None:
    """One that does next to nothing; it says its name when it listens."""
    command_line = [sys.executable, "-m", module, str(broker.port), *arguments]
    broker.service = Service(broker.kind, pinned(cores.broker, command_line), ROOT)
    broker.service.log_file = directory / f"{broker.kind}.log"
    broker.service.start(lambda output: broker.kind in output)


@contextmanager
def with_responses_only(directory: Path, cores: Cores) -> Iterator[Kinds]:
    with both_brokers(directory, cores) as kinds:
        broker = Broker(RESPONSES_ONLY, directory / "responds-only", None, {})
        _start(broker, directory, cores, responses_only.__name__)
        try:
            yield {**kinds, RESPONSES_ONLY: broker}
        finally:
            broker.service.kill()


@contextmanager
def with_sends_only(directory: Path, cores: Cores) -> Iterator[Kinds]:
    """What it sends from was written by a kpybroker on the clients' core, which does all but the sending."""
    with both_brokers(directory, cores) as kinds, ExitStack() as stack:
        broker = Broker(SENDS_ONLY, directory / "sends-only", None, {})
        advertised = {"advertised.listeners": f"PLAINTEXT://{broker.bootstrap}"}
        upstream = stock_broker("kpybroker", directory / "upstream", None, cores.client, advertised)
        broker.data_dir = upstream.data_dir
        partition = str(broker.data_dir / f"{CONSUMED_TOPIC}-0")
        _start(broker, directory, cores, sends_only.__name__, str(upstream.port), partition)
        stack.callback(broker.service.kill)
        upstream.start()
        stack.callback(upstream.service.kill)
        yield {**kinds, SENDS_ONLY: broker}


def producers_page(results: Sequence[Result]) -> Table:
    head = ["", "unit", KIND_NAMES["kafka"], KIND_NAMES["kpybroker"], RESPONSES_ONLY, "ratio", "most", "floor"]
    rows = [
        [
            line.figure.name,
            line.figure.unit,
            *(line.cell(kind) for kind in ("kafka", "kpybroker", RESPONSES_ONLY)),
            f"{line.ratio:.2f}",
            f"{line.median(RESPONSES_ONLY) / line.median('kafka'):.2f}",
            f"{line.figure.floor:g}",
        ]
        for result in results
        for line in result.lines
    ]
    return Table(head, rows)


def replays_page(results: Sequence[Result]) -> Table:
    kinds = ("kafka", "kpybroker", SENDS_ONLY)
    names = [KIND_NAMES.get(kind, kind) for kind in kinds]
    head = ["", *(f"MB/s, {name}" for name in names), *(f"CPU, {name}" for name in names), "share", "least", "floor"]
    rows = []
    for result in results:
        (line,) = result.lines
        cpu = {kind: sorted(sample.cpu or 0.0 for sample in result.counted(kind)) for kind in kinds}
        median = {kind: statistics.median(values) for kind, values in cpu.items()}
        rows.append(
            [
                line.figure.name,
                *(line.cell(kind) for kind in kinds),
                *(f"{median[kind]:.2f} ({cpu[kind][0]:.2f} to {cpu[kind][-1]:.2f})" for kind in kinds),
                f"{median['kpybroker'] / median['kafka']:.2f}",
                f"{median[SENDS_ONLY] / median['kafka']:.2f}",
                f"{result.workload.cpu_share_max:g}",
            ]
        )
    return Table(head, rows)


def main() -> int:
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    producers, replays = (
        [line for line in group if options.only in line.figures[0].name]
        for group in (
            java_producers(JAVA_WARM_UP_REPORTS),
            [line for line in PINNED if "replay" in line.figures[0].name],
        )
    )
    clock, apart, _ = command.prepare()
    plan = Schedule(clock, rounds, QUICK_SCALE if options.quick else 1.0, 0.0, len(producers) + len(replays))
    parts: list[Part] = []
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        if producers:
            with with_responses_only(scratch / "producers", apart) as kinds:
                parts += [PRODUCERS, producers_page(Bench(kinds, apart, plan).measure_all(producers))]
        if replays:
            with with_sends_only(scratch / "replays", apart) as kinds:
                bench = Bench(kinds, apart, plan)
                bench.fill()
                parts += [REPLAYS, replays_page(bench.measure_all(replays))]
    conditions = clock.conditions(rounds)
    return command.finish(options, "bench-ceiling", conditions, [conditions.sentence(), *parts], [])


if __name__ == "__main__":
    sys.exit(main())
