"""Scripts about a share partition, played to Kafka 4.3.1's own class by `SharePartitions.java`, in one JVM for many.

Where Kafka's class goes wrong, the comparison of a script ends:

- it raises an exception (a record batch of an aborted transaction begins below the start offset; or at the limit of
  records in flight, the log no longer has what is available);
- its start offset goes back: when the log's start offset passed all that was in flight, and a write ends then, it
  becomes the offset after what was in flight. The next fetch is out of range, which moves it on again;
- nothing in flight has the start offset when a write ends: Kafka does not forget what is done with (an exception in a
  callback);
- the log's start offset is in a gap between persisted batches: Kafka goes on to fetch below it, and to keep what is
  done with after the gap's start.
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
    for number, (ours, theirs) in enumerate(zip(script.seen, kafka, strict=False)):
        if "throws" in theirs or _start(theirs) < start or _next(theirs) < _start(theirs):
            return number, None
        if ours != theirs:
            forgets = not _has_start(theirs) or _without_done(ours) == _without_done(theirs)
            if script.steps[number].startswith("written") and forgets:
                return number, None
            return number, Difference(number, script.steps[: number + 1], ours, theirs)
        start = _start(theirs)
    return len(script.seen), None


def _start(seen: str) -> int:
    return int(seen.partition(" start=")[2].partition(" ")[0])


def _next(seen: str) -> int:
    return int(seen.partition("next=")[2].partition(" ")[0])


def _has_start(seen: str) -> bool:
    runs = re.findall(r"(\d+)-(\d+):", seen.partition("runs=")[2])
    return not runs or any(int(first) <= _start(seen) <= int(last) for first, last in runs)


def _without_done(seen: str) -> str:
    """Without the runs below the start offset that are done with."""
    before, runs = seen.split("runs=")
    kept = [
        run for run in runs.split(",") if not re.fullmatch(r"\d+-\d+:[24]:\d+:", run) or _ends_after_start(seen, run)
    ]
    return before + ",".join(kept)


def _ends_after_start(seen: str, run: str) -> bool:
    return int(run.partition(":")[0].partition("-")[2]) >= _start(seen)
