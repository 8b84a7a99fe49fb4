"""Scripts about a share partition, played to Kafka 4.3.1's own class by `SharePartitions.java`, in one JVM for many.

Where Kafka's class goes wrong, the comparison of a script ends:

- it raises an exception (a record batch of an aborted transaction begins below the start offset; or at the limit of
  records in flight, the log no longer has what is available);
- its start offset goes back: when the log's start offset passed all that was in flight, and a write ends then, it
  becomes the offset after what was in flight. The next fetch is out of range, which moves it on again;
- nothing in flight has the start offset when a write ends: Kafka does not forget what is done with (an exception in a
  callback);
- it goes on to fetch below the log's start offset: when that is in a gap between persisted batches, or a write fails
  that released records below it, after their lock ran out;
- the log's start offset is inside of a record batch, and something is in flight below: Kafka hands out the offsets of
  the batch that are below the start offset;
- at the limit of records in flight, all of them were archived when they were acquired (aborted transactions): Kafka's
  start offset does not move, so that no member gets a record any more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from compat_tests.deps import ROOT
from compat_tests.groups.share_scripts import Script
from compat_tests.support.tools import program_command, run_process

SHARE_PARTITIONS = ROOT / "compat_tests" / "workers" / "SharePartitions.java"


class Difference(NamedTuple):
    """The first step after which something else is seen on Kafka."""

    step: int
    script: list[str]
    ours: str
    kafka: str


def ask_kafka(scripts: Sequence[Sequence[str]]) -> list[list[str]]:
    """What is seen after each step of each script."""
    program = program_command("4.x", SHARE_PARTITIONS, ["-Xss2m"])
    lines = run_process(program, "".join(";".join(script) + "\n" for script in scripts)).out.splitlines()
    assert len(lines) == len(scripts)
    return [[" ".join(seen.split()) for seen in line.split(" | ")] for line in lines]


def compared(script: Script, kafka: Sequence[str]) -> tuple[int, Difference | None]:
    """How many steps were compared, and the first difference."""
    start = 0
    for number, (step, ours, theirs) in enumerate(zip(script.steps, script.seen, kafka, strict=False)):
        if "throws" in theirs or _start(theirs) < start or _next(theirs) < _start(theirs) or _is_stuck(theirs):
            return number, None
        if ours != theirs:
            forgets_less = step.startswith("written") and _forgets_less(ours, theirs)
            meant = forgets_less or _acquires_below(step, script.seen[number - 1])
            return number, None if meant else Difference(number, script.steps[: number + 1], ours, theirs)
        start = _start(theirs)
    return len(script.seen), None


def _start(seen: str) -> int:
    return int(seen.partition(" start=")[2].partition(" ")[0])


def _next(seen: str) -> int:
    return int(seen.partition("next=")[2].partition(" ")[0])


def _is_stuck(seen: str) -> bool:
    """Whether no member may acquire more, but there is nothing that could be acknowledged or run out either."""
    return "can=false" in seen and not re.search(r":[01]:\d+:|\?", seen.partition("runs=")[2])


def _acquires_below(step: str, before: str) -> bool:
    """Whether a record batch begins below the start offset, which is not in flight, but something below is."""
    words = step.split()
    return words[0] == "acquire" and int(words[-1].partition("-")[0]) < _start(before) and not _has_start(before)


def _forgets_less(ours: str, kafka: str) -> bool:
    return not _has_start(kafka) or _without_done(ours) == _without_done(kafka)


def _has_start(seen: str) -> bool:
    runs = _runs(seen)
    return not runs or any(first <= _start(seen) <= last for first, last in runs)


def _runs(seen: str) -> list[tuple[int, int]]:
    runs = re.findall(r"(\d+)-(\d+):", seen.partition("runs=")[2])
    return [(int(first), int(last)) for first, last in runs]


def _without_done(seen: str) -> str:
    """Without the runs below the start offset that are done with."""
    before, runs = seen.split("runs=")
    kept = [
        run for run in runs.split(",") if not re.fullmatch(r"\d+-\d+:[24]:\d+:", run) or _ends_after_start(seen, run)
    ]
    return before + ",".join(kept)


def _ends_after_start(seen: str, run: str) -> bool:
    return int(run.partition(":")[0].partition("-")[2]) >= _start(seen)
