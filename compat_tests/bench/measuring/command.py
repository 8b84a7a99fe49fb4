"""What the bench commands share: their options, and how each ends."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence

from compat_tests.bench.measuring.brokers import Cores, compile_sources
from compat_tests.bench.measuring.costs import Machine
from compat_tests.bench.measuring.report import Conditions, Part, markdown, write_page


def parser(doc: str | None, rounds: int) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    made.add_argument("--quick", action="store_true", help="less of everything, to see that it works; writes no page")
    made.add_argument("--rounds", type=int, help=f"counted rounds [{rounds}; quick: 1]")
    made.add_argument("--only", default="", metavar="WORDS", help="only what has these words in its name")
    made.add_argument("--no-write", action="store_true", help="leave docs/internals/benchmarks alone")
    made.add_argument("--dir", help="where the brokers keep their files [the system's temporary directory]")
    return made


class Clock:
    """How long the run has taken so far, and what it says on the way."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._machine = Machine()

    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def say(self, text: str) -> None:
        print(f"{self.seconds():5.0f} s  {text}", file=sys.stderr, flush=True)

    def conditions(self, rounds: int, running: Iterable[int] = ()) -> Conditions:
        """`running` are the processes of ours that have not ended."""
        machine = self._machine
        return Conditions(rounds, machine.share_of_others(running), machine.share_stolen(), self.seconds() / 60)


def prepare() -> tuple[Clock, Cores, Cores]:
    """The clock of the run, cores apart and cores shared. The bench itself, which mostly waits, goes to the clients'
    core too."""
    compile_sources()
    apart, shared = Cores.apart(), Cores.shared()
    os.sched_setaffinity(0, apart.client)
    return Clock(), apart, shared


def finish(
    options: argparse.Namespace, command: str, conditions: Conditions, parts: Sequence[Part], missed: list[str]
) -> int:
    """Print, write into the page when that is worth it, and say by the exit code whether every floor is met."""
    print(markdown(parts))
    if not conditions.quiet:
        print(f"{command}: the machine was not quiet: the page is left alone, try again", file=sys.stderr)
    elif not (options.quick or options.only or options.no_write):
        write_page(command, parts)
    if missed:
        print(f"{command}: missed: {'; '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0
