"""`make bench-beside`: what a hot producer's p99 becomes while the broker has other work.

    python -m compat_tests.bench.beside [--quick] [--only WORDS] [--rounds N] [--no-write]

The producer is a raw client with a fixed rate far below what the client can do; its latencies count from when a request
was due. It runs alone, then next to a compaction, retention, a cold replay and slow consumers; both brokers in turn,
broker and clients on a core each. The ratio is the p99 with a neighbour to the p99 alone, medians of the rounds. For
kpybroker the loop's stalls during those seconds are asked with SIGUSR1. Exits with 1 when the design's floors are
missed, or when a neighbour was not busy for most of the time and so nothing was shown.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.neighbours import NEIGHBOURS, OVERRIDES
from compat_tests.bench.load.page_cache import require_room
from compat_tests.bench.load.workloads import RAW_BATCH, one_record
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import KIND_NAMES, Cores, both_brokers, scratch_directory
from compat_tests.bench.measuring.costs import Stall, loop_stall
from compat_tests.bench.measuring.report import MISSED, Conditions, Part, Table, number

ROUNDS = 3
RATE = 500
WARM_UP_SECONDS, HOT_WARM_UP_SECONDS, SECONDS = 8.0, 0.3, 8.0
QUICK_SCALE = 0.15
ROOM_GB = 12.0
ALONE = "alone"
P99_RATIO_MAX, STALL_P99_9_MS_MAX = 2.0, 50.0
BUSY_SHARE_MIN = 0.2
"""Of the time: a neighbour that is busy during a fifth of the requests decides their p99."""


@dataclass(frozen=True, slots=True)
class Hot:
    """What the hot producer had in one round, in ms, and how busy its neighbour was."""

    p50_ms: float
    p99_ms: float
    max_ms: float
    busy_share: float
    stall: Stall | None

    def __str__(self) -> str:
        said = f"p50 {self.p50_ms:6.2f} ms  p99 {self.p99_ms:7.2f}  longest {self.max_ms:7.2f}"
        said += f"  neighbour busy {self.busy_share:4.0%}"
        if self.stall is not None:
            said += f"  loop stall p99.9 {self.stall.p99_9_ms:g} ms, longest {self.stall.longest_ms:g}"
        return said


Found = dict[str, dict[str, list[Hot]]]
"""By neighbour and broker."""


def hot_producer(here: Run, neighbour: str) -> Hot:
    """`here.topic` is the producer's; the neighbour has its own."""
    neighbour_run = Run(here.broker, here.client_cores, f"{here.topic}-busy", here.scale)
    is_ours = here.broker.kind == "kpybroker"
    with here.own_topic(), NEIGHBOURS[neighbour](neighbour_run) as busy:
        if is_ours:
            loop_stall(here.broker)
        done = here.raw(rate=RATE, seconds=here.seconds(SECONDS), warm_up=HOT_WARM_UP_SECONDS, **RAW_BATCH)
        stall = loop_stall(here.broker) if is_ours else None
    return Hot(done["p50_ms"], done["p99_ms"], done["max_ms"], busy.share, stall)


def measure(
    directory: Path, cores: Cores, clock: command.Clock, rounds: int, scale: float, neighbours: Sequence[str]
) -> Found:
    found: Found = {neighbour: {} for neighbour in neighbours}
    with both_brokers(directory, cores, OVERRIDES) as kinds:
        for kind in kinds:
            one_record(4, full_seconds=WARM_UP_SECONDS)(Run(kinds[kind], cores.client, "warm-up", scale))
        for round_number in range(rounds):
            for neighbour in neighbours:
                order = list(kinds) if round_number % 2 == 0 else list(reversed(list(kinds)))
                for kind in order:
                    topic = f"hot-{round_number}-{neighbour}".replace(" ", "-")
                    hot = hot_producer(Run(kinds[kind], cores.client, topic, scale), neighbour)
                    found[neighbour].setdefault(kind, []).append(hot)
                    clock.say(f"{neighbour:20} {kind:10} {hot}")
    return found


def main() -> int:
    parser = command.parser(__doc__, ROUNDS)
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    neighbours = [name for name in NEIGHBOURS if name == ALONE or options.only in name]
    clock, apart, _ = command.prepare()
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        found = measure(scratch, apart, clock, rounds, QUICK_SCALE if options.quick else 1.0, neighbours)
    conditions = clock.conditions(rounds)
    rows = [Row(neighbour, found) for neighbour in neighbours]
    missed = [f"next to {row.neighbour}: {reason}" for row in rows for reason in row.missed]
    return command.finish(options, "bench-beside", conditions, page(conditions, rows), missed)


class Row:
    """One neighbour: medians of the rounds, the worst stall of any."""

    def __init__(self, neighbour: str, found: Found) -> None:
        self.neighbour = neighbour
        self._hot = found[neighbour]
        self._alone = found[ALONE]

    def p99_ms(self, kind: str) -> float:
        return statistics.median(hot.p99_ms for hot in self._hot[kind])

    def ratio(self, kind: str) -> float:
        return self.p99_ms(kind) / statistics.median(hot.p99_ms for hot in self._alone[kind])

    def busy_share(self, kind: str) -> float:
        return statistics.median(hot.busy_share for hot in self._hot[kind])

    @property
    def stall(self) -> Stall:
        stalls = [hot.stall for hot in self._hot["kpybroker"] if hot.stall is not None]
        return Stall(max(stall.p99_9_ms for stall in stalls), max(stall.longest_ms for stall in stalls))

    @property
    def missed(self) -> list[str]:
        reasons = []
        if self.ratio("kpybroker") > P99_RATIO_MAX:
            reasons.append("p99")
        if self.stall.p99_9_ms > STALL_P99_9_MS_MAX:
            reasons.append("loop stall")
        if self.neighbour != ALONE and self.busy_share("kpybroker") < BUSY_SHARE_MIN:
            reasons.append("it was not busy")
        return reasons

    def cells(self) -> list[str]:
        marks = dict.fromkeys(self.missed, MISSED)
        cells = [self.neighbour]
        for kind in KIND_NAMES:
            p99s = [hot.p99_ms for hot in self._hot[kind]]
            ratio = "" if self.neighbour == ALONE else f"{self.ratio(kind):.1f}"
            busy = "" if self.neighbour == ALONE else f"{self.busy_share(kind):.0%}"
            if kind == "kpybroker":
                ratio, busy = ratio + marks.get("p99", ""), busy + marks.get("it was not busy", "")
            cells += [f"{number(self.p99_ms(kind))} ({number(min(p99s))} to {number(max(p99s))})", ratio, busy]
        return [*cells, number(self.stall.p99_9_ms) + marks.get("loop stall", ""), number(self.stall.longest_ms)]


def page(conditions: Conditions, rows: Sequence[Row]) -> list[Part]:
    kafka, ours = (KIND_NAMES[kind] for kind in ("kafka", "kpybroker"))
    head = ["neighbour", f"p99 ms, {kafka}", "to alone", "busy", f"p99 ms, {ours}", "to alone", "busy"]
    head += ["loop stall p99.9, ms", "longest"]
    size = RAW_BATCH["records"] * RAW_BATCH["record_bytes"] // 1024
    return [
        f"{conditions.sentence()} The producer sends {RATE} requests of {size} KB a second. kpybroker's p99 may become "
        f"{P99_RATIO_MAX:g} × what it is alone, its loop stall p99.9 {STALL_P99_9_MS_MAX:g} ms; the stalls are the "
        f"worst of the rounds. *Busy*: the share of the time in which the neighbour had something to do.",
        Table(head, [row.cells() for row in rows]),
    ]


if __name__ == "__main__":
    sys.exit(main())
