"""`make bench-ceiling`: how much a Java producer with a core of its own could make of any broker.

    python -m compat_tests.bench.ceiling [--quick] [--only WORDS] [--rounds N] [--no-write]

The producers' lines of `make bench` with Kafka, with kpybroker, and with a broker that only answers
(`answers_only`), in alternating rounds. What that one makes is about what the client's core can do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compat_tests.bench import answers_only, command
from compat_tests.bench.brokers import KIND_NAMES, Cores, Kinds, both_brokers, pinned, scratch_directory
from compat_tests.bench.page_cache import require_room
from compat_tests.bench.report import Conditions, Result, table
from compat_tests.bench.run import QUICK_SCALE, ROOM_GB, Bench, Plan
from compat_tests.bench.workloads import JAVA_WARM_UP_REPORTS, java_producers
from compat_tests.deps import ROOT
from compat_tests.support.services import Broker, Service

ROUNDS = 3
KIND = "answers only"
EXPLANATION = (
    "MB are 10^6 bytes of record values. *Answers only*: a broker that takes a request off its socket, keeps nothing "
    "of it, and answers. *Most*: its rate to Kafka's, which is about the highest that a broker can have."
)


@contextmanager
def three_brokers(directory: Path, cores: Cores) -> Iterator[Kinds]:
    with both_brokers(directory, cores) as kinds:
        broker = Broker(KIND, directory / "answers-only", None, {})
        module = [sys.executable, "-m", answers_only.__name__, str(broker.port)]
        broker.service = Service("answers-only", pinned(cores.broker, module), ROOT)
        broker.service.log_file = directory / "answers-only.log"
        broker.service.start(lambda output: answers_only.READY in output)
        try:
            yield {**kinds, KIND: broker}
        finally:
            broker.service.kill()


def page(conditions: Conditions, results: Sequence[Result]) -> str:
    head = ["", "unit", KIND_NAMES["kafka"], KIND_NAMES["kpybroker"], "answers only", "ratio", "most", "floor"]
    rows = [
        [
            line.figure.name,
            line.figure.unit,
            *(line.cell(kind) for kind in ("kafka", "kpybroker", KIND)),
            f"{line.ratio:.2f}",
            f"{line.median(KIND) / line.median('kafka'):.2f}",
            f"{line.figure.floor:g}",
        ]
        for result in results
        for line in result.lines
    ]
    return f"{conditions.sentence()} {EXPLANATION}\n\n{table(head, rows)}"


def main() -> int:
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    lines = [line for line in java_producers(JAVA_WARM_UP_REPORTS) if options.only in line.figures[0].name]
    clock, apart, _ = command.prepare()
    plan = Plan(clock, rounds, QUICK_SCALE if options.quick else 1.0, 0.0, len(lines))
    with scratch_directory(options.dir) as scratch:
        require_room(scratch, ROOM_GB)
        with three_brokers(scratch / "apart", apart) as kinds:
            results = Bench(kinds, apart, plan).measure_all(lines)
    conditions = clock.conditions(rounds)
    return command.finish(options, "bench-ceiling", conditions, page(conditions, results), [])


if __name__ == "__main__":
    sys.exit(main())
