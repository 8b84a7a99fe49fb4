"""`make fuzz`: every parser of what strangers send, guided by coverage; a table of what was run and reached.

    python -m tests.fuzz.run [TARGET ...] [--runs 100000] [--times TARGET=N ...] [--write]

The inputs that reach something new are kept under `.cache/fuzz/TARGET`, so that each run begins where the last one
ended. An input that breaks a rule becomes a line of hex in the target's file of `tests/fuzz/found`, which `make test`
plays from then on, and the command exits with 1. `--write` writes the table into docs/testing/fuzzing.md.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.played import played
from tests.fuzz.target import Target
from tests.fuzz.targets import every

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "fuzz"
PAGE = ROOT / "docs" / "testing" / "fuzzing.md"
BEGIN, END = "<!-- written by make fuzz: begin -->", "<!-- written by make fuzz: end -->"
RUNS = 100_000
INPUT_BYTES_MAX = 4096
INPUT_S_MAX, INPUT_MB_MAX = 5, 1024
DONE = re.compile(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+) corp: (\d+)")


class Result(NamedTuple):
    """`edges` are libFuzzer's; `lines` is the share of the lines of the target's modules that its corpus reaches."""

    name: str
    runs: int
    seconds: float
    edges: int
    inputs: int
    lines: float

    def row(self) -> str:
        cells = (self.name, f"{self.runs:,}", f"{self.seconds:.0f}", f"{self.inputs:,}", f"{self.edges:,}")
        return f"| {' | '.join(cells).replace(',', ' ')} | {self.lines:.0%} |"


def fuzz(target: Target, runs: int) -> Result | str:
    """What was reached, or the end of the output of a run that has found something."""
    corpus = KEPT / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate([*target.seeds(), *played(target.name)]):
        (corpus / f"seed-{number}").write_bytes(seed)
    limits = [f"-max_len={INPUT_BYTES_MAX}", f"-timeout={INPUT_S_MAX}", f"-rss_limit_mb={INPUT_MB_MAX}"]
    options = [str(corpus), f"-runs={runs}", *limits, f"-artifact_prefix={KEPT}/", "-print_final_stats=1"]
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.child", target.name, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    took_s = time.monotonic() - began_s
    last = DONE.findall(done.stdout)
    if done.returncode or not last:
        return done.stdout[-4000:]
    executed, edges, _, inputs = map(int, last[-1])
    return Result(target.name, executed, took_s, edges, inputs, lines_reached(target.name))


def lines_reached(name: str) -> float:
    """Of the target's modules, by the inputs that were kept, in a process that has imported none of them."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.reached", name, str(KEPT / name)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout or "nan")


def write_page(results: list[Result]) -> None:
    """The table of the page, in which the rows of targets that were not run stay."""
    head = ["| target | executions | s | inputs kept | edges | lines |", "|---|---|---|---|---|---|"]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    written, _, after = rest.partition(END)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in written.strip().splitlines()[len(head) :]}
    rows |= {result.name: result.row() for result in results}
    table = "\n".join([*head, *(rows[name] for name in every() if name in rows)])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--times", action="append", default=[], metavar="TARGET=N", help="this one N times as many")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    options = parser.parse_args(arguments)
    known = every()
    unknown = sorted(set(options.targets) - known.keys())
    if unknown:
        parser.error(f"there is no target {unknown[0]}: {', '.join(known)}")
    times = dict(one.split("=") for one in options.times)
    results, failed = [], []
    for name in options.targets or known:
        outcome = fuzz(known[name], options.runs * int(times.get(name, 1)))
        if isinstance(outcome, Result):
            results.append(outcome)
            print(outcome.row(), flush=True)
        else:
            failed.append(name)
            print(f"{name} has FAILED:\n{outcome}", flush=True)
    if options.write and not failed:
        write_page(results)
    print(f"{sum(result.runs for result in results):,} executions; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
