"""`make bench-growth`: whether the ratio to Kafka holds as partitions, connections and the log grow.

    python -m compat_tests.bench.growth [--quick] [--only WORDS] [--rounds N] [--log-gb 1,5,20] [--no-write]

Three scenes: one topic with more and more partitions, the load spread over them evenly; one partition, and more and
more connections next to the client's that idle; one partition whose log is longer and longer. In each, at each size:
what a raw producer gets rid of, what kcat reads from the end, and the median latency of one-record requests. Broker
and client have a core each; both brokers hold the same at the same time, and the rounds alternate after one that is not
counted. Exits with 1 when a ratio falls by more than the design allows from the smallest size to any other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from compat_tests.bench.load import page_cache
from compat_tests.bench.load.clients import Run, kcat, seconds_of
from compat_tests.bench.load.workloads import KILOBYTE, RAW_BATCH, Figure, one_record
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import (
    KIND_NAMES,
    Cores,
    Kinds,
    both_brokers,
    idle_connections,
    scratch_directory,
)
from compat_tests.bench.measuring.report import MISSED, Conditions, Line, Part, Table
from compat_tests.support.waiting import eventually

ROUNDS = 7
FALL_MAX = 0.10
WARM_UP_SECONDS = 8.0
PRODUCED_MB, CONSUMED_MB, LATENCY_SECONDS = 300, 600, 1.5
QUICK_SCALE = 0.05
SPARE_GB = 6.0
GONE_DEADLINE_S = 120.0
FIGURES = (
    Figure("raw produce, 16 KB batches of 1 KB", "MB/s"),
    Figure("kcat consume 1 KB", "MB/s"),
    Figure("one-record requests, median latency", "ms", less_is_better=True),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Something that grows. `open` sets a topic up with as much of it as `size`, and says its number of partitions."""

    name: str
    sizes: Sequence[float]
    open: Callable[[Run, float], AbstractContextManager[int]]


@dataclass(frozen=True, slots=True)
class Grown:
    """The figures of a scene at each size."""

    scene: Scene
    lines: dict[float, list[Line]]

    def fall(self, size: float, figure: int) -> float:
        """From the smallest size, as a share of the ratio there; below 0 where it rose."""
        first = self.lines[self.scene.sizes[0]][figure].ratio
        return 1 - self.lines[size][figure].ratio / first

    @property
    def missed(self) -> list[str]:
        return [
            f"{self.scene.name}, {size:g}: {FIGURES[figure].name}"
            for size in self.scene.sizes
            for figure in range(len(FIGURES))
            if self.fall(size, figure) > FALL_MAX
        ]


def requests_of(megabytes: float) -> int:
    return max(int(megabytes * 1e6 / (RAW_BATCH["records"] * RAW_BATCH["record_bytes"])), 1)


@contextmanager
def filled(here: Run, partitions: int, megabytes: float) -> Iterator[int]:
    """The run's topic with so much in it, on the disk too; its files are gone afterwards."""
    with here.own_topic(partitions) as topic:
        here.raw(partitions=partitions, in_flight=8, requests=requests_of(megabytes) + partitions, **RAW_BATCH)
        for partition in range(partitions):
            page_cache.sync(here.partition_dir(topic, partition))
        yield partitions
    eventually(lambda: not list(here.broker.data_dir.glob(f"{topic}*")), f"the end of {topic}", GONE_DEADLINE_S)


def with_partitions(here: Run, size: float) -> AbstractContextManager[int]:
    return filled(here, int(size), here.scale * CONSUMED_MB)


@contextmanager
def with_connections(here: Run, size: float) -> Iterator[int]:
    with filled(here, 1, here.scale * CONSUMED_MB) as partitions, idle_connections(here.bootstrap, int(size) - 1):
        yield partitions


def with_log(here: Run, size: float) -> AbstractContextManager[int]:
    return filled(here, 1, size * 1000)


def figures_of(here: Run, partitions: int) -> tuple[float, ...]:
    produced = here.raw(partitions=partitions, in_flight=8, requests=requests_of(here.scale * PRODUCED_MB), **RAW_BATCH)
    each = int(here.scale * CONSUMED_MB * 1e6 / KILOBYTE) // partitions
    options = ("-o", f"-{each}", "-c", str(each * partitions))
    took_s = float(here.client(seconds_of(kcat(here.bootstrap, here.topic, *options))))
    small = here.raw(partitions=partitions, seconds=here.seconds(LATENCY_SECONDS), warm_up=0.3)
    return (
        produced["megabytes"] / produced["seconds"],
        each * partitions * KILOBYTE / 1e6 / took_s,
        small["p50_ms"],
    )


class Growth:
    def __init__(self, kinds: Kinds, cores: Cores, clock: command.Clock, rounds: int, scale: float) -> None:
        self._kinds = kinds
        self._cores = cores
        self._clock = clock
        self._rounds = rounds
        self._scale = scale

    def here(self, kind: str, topic: str) -> Run:
        return Run(self._kinds[kind], self._cores.client, topic, self._scale)

    def warm_up(self) -> None:
        for kind in self._kinds:
            one_record(4, full_seconds=WARM_UP_SECONDS)(self.here(kind, "warm-up"))

    def grow(self, scene: Scene) -> Grown:
        return Grown(scene, {size: self._measure(scene, size) for size in scene.sizes})

    def _measure(self, scene: Scene, size: float) -> list[Line]:
        topic = f"{scene.name}-{size:g}".replace(" ", "-")
        found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in self._kinds}
        with ExitStack() as stack:
            partitions = {kind: stack.enter_context(scene.open(self.here(kind, topic), size)) for kind in self._kinds}
            for number_of_round in range(1 + self._rounds):
                for kind in self._kinds if number_of_round % 2 == 0 else reversed(list(self._kinds)):
                    found[kind].append(figures_of(self.here(kind, topic), partitions[kind]))
        lines = [
            Line(figure, {kind: [values[n] for values in rounds[1:]] for kind, rounds in found.items()})
            for n, figure in enumerate(FIGURES)
        ]
        for line in lines:
            self._clock.say(f"{scene.name}, {size:g}: {line.summary()}")
        return lines


def scenes(quick: bool, log_gb: Sequence[float]) -> list[Scene]:
    numbers = (1, 10, 50) if quick else (1, 100, 1000)
    return [
        Scene("partitions", numbers, with_partitions),
        Scene("connections", numbers, with_connections),
        Scene("GB of log", log_gb, with_log),
    ]


def main() -> int:
    parser = command.parser(__doc__, ROUNDS)
    parser.add_argument("--log-gb", metavar="LIST", help="sizes of the log in GB [1,5,20; quick: 0.05,0.1]")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    log_gb = [float(size) for size in (options.log_gb or ("0.05,0.1" if options.quick else "1,5,20")).split(",")]
    chosen = [scene for scene in scenes(options.quick, log_gb) if options.only in scene.name]
    clock, apart, _ = command.prepare()
    with scratch_directory(options.dir) as scratch:
        page_cache.require_room(scratch, room_gb(chosen))
        grown = measure(scratch, apart, clock, rounds, QUICK_SCALE if options.quick else 1.0, chosen)
    conditions = clock.conditions(rounds)
    missed = [name for one in grown for name in one.missed]
    return command.finish(options, "bench-growth", conditions, page(conditions, grown), missed)


def room_gb(chosen: Sequence[Scene]) -> float:
    """Both brokers hold the longest log at once."""
    return SPARE_GB + 2 * max((max(scene.sizes) for scene in chosen if scene.open is with_log), default=0)


def measure(
    directory: Path, cores: Cores, clock: command.Clock, rounds: int, scale: float, chosen: Sequence[Scene]
) -> list[Grown]:
    with both_brokers(directory, cores) as kinds:
        growth = Growth(kinds, cores, clock, rounds, scale)
        growth.warm_up()
        return [growth.grow(scene) for scene in chosen]


def page(conditions: Conditions, grown: Sequence[Grown]) -> list[Part]:
    head = ["", "of", "unit", KIND_NAMES["kafka"], KIND_NAMES["kpybroker"], "ratio", "falls by"]
    rows = [
        [
            figure.name if size == one.scene.sizes[0] else "",
            f"{size:,g} {one.scene.name}",
            figure.unit,
            line.cell("kafka"),
            line.cell("kpybroker"),
            f"{line.ratio:.2f}",
            "" if size == one.scene.sizes[0] else f"{one.fall(size, n):.0%}" + MISSED * (one.fall(size, n) > FALL_MAX),
        ]
        for one in grown
        for n, figure in enumerate(FIGURES)
        for size, line in ((size, lines[n]) for size, lines in one.lines.items())
    ]
    return [f"{conditions.sentence()} The ratio may fall by {FALL_MAX:.0%}.", Table(head, rows)]


if __name__ == "__main__":
    sys.exit(main())
