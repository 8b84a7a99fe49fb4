"""`make simulate`: storms of many seeds, and what each that fails comes down to.

    python -m tests.simulation.run --seeds 100            # 1 to 100, on all processors
    python -m tests.simulation.run --seed 17              # one, twice; with its trace in a file if it fails
    python -m tests.simulation.run --seed 17 --shrink     # and made small

Python's order of sets of texts is another one in each process, unless it is fixed: it is, here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.simulation.plays import PLAYS
from tests.simulation.scenario import run
from tests.simulation.shrink import shrink
from tests.simulation.storm import Storm, draw
from tests.simulation.world import Ended, simulate

TWICE_EVERY = 20
"""One seed in so many is run twice, and must have the same digest."""
LINES_SHOWN = 60
PLAY_S_MAX = 300.0
HASH_SEED = "0"
SEEDS_A_PROCESS = 50
"""Then it is replaced, so that what a process remembers is bounded."""
SAID_EVERY = 100


class Result(NamedTuple):
    seed: int
    digest: str
    cpu_s: float
    problems: list[str]


def play(seed: int, seconds: float, *, twice: bool = False) -> Result:
    """One seed; with `twice` another trace of the same seed is a problem too."""
    began = time.process_time()
    storm = draw(seed, seconds=seconds)
    ended = run(storm)
    problems = list(ended.problems)
    if twice and (again := run(storm).digest) != ended.digest:
        problems.append(f"not the same twice: {ended.digest} and {again}")
    return Result(seed, ended.digest, time.process_time() - began, problems)


def _play(work: tuple[int, float]) -> Result:
    seed, seconds = work
    return play(seed, seconds, twice=seed % TWICE_EVERY == 0)


def with_client(seeds: range, seconds: float, kind: str | None) -> list[int]:
    """Those in whose storm there is a client of that kind; None: all."""
    if kind is None:
        return list(seeds)
    return [seed for seed in seeds if any(is_a(name, kind) for name in draw(seed, seconds=seconds).clients)]


def is_a(client: str, kind: str) -> bool:
    """Clients are kinds with numbers."""
    return client.rstrip("0123456789") == kind


def play_all(seeds: Sequence[int], seconds: float, workers: int) -> Iterator[Result]:
    """Each as it ends."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.simulation.scenario"])
    with context.Pool(workers, maxtasksperchild=SEEDS_A_PROCESS) as pool:
        yield from pool.imap_unordered(_play, [(seed, seconds) for seed in seeds])


def kinds(problems: list[str]) -> frozenset[str]:
    """What is wrong, without where and when."""
    return frozenset(problem.partition(" ")[2].partition(":")[0] for problem in problems)


def report(storm: Storm, ended: Ended) -> str:
    """A storm and the end of its trace, for a screen."""
    wanted = [line for line in ended.lines if " net " not in line]
    return "\n".join(
        [
            f"seed {storm.seed}: {storm.brokers} brokers, {storm.partitions} partitions, {storm.seconds:g} s, "
            f"{', '.join(storm.clients)}; {storm.keys}",
            *(f"    {fault}" for fault in storm.faults),
            *(f"  {problem}" for problem in ended.problems),
            *wanted[-LINES_SHOWN:],
        ]
    )


def look_closely(seed: int, seconds: float, directory: Path, *, shrinks: bool) -> int:
    """One seed, twice; its trace in a file. With `shrinks` the smallest storm that fails alike."""
    storm = draw(seed, seconds=seconds)
    ended, again = run(storm, keeps_all=True), run(storm)
    if ended.digest != again.digest:
        ended.problems.append(f"0 not the same twice: {ended.digest} and {again.digest}")
    if ended.problems and shrinks:
        wanted = kinds(ended.problems)
        storm = shrink(storm, lambda smaller: bool(wanted & kinds(run(smaller).problems)))
        ended = run(storm, keeps_all=True)
    directory.mkdir(parents=True, exist_ok=True)
    trace = directory / f"{seed}.txt"
    trace.write_text("\n".join(ended.lines) + "\n")
    print(report(storm, ended) if ended.problems else f"seed {seed}: nothing is wrong; {ended.digest}")
    print(f"the whole trace: {trace}")
    return int(bool(ended.problems))


def play_by_name(name: str, seeds: int) -> int:
    """A history that is written out, under so many orders of tasks."""
    play = PLAYS[name]
    for seed in range(1, seeds + 1):
        ended = simulate(seed, play.run, brokers=play.brokers, seconds_max=PLAY_S_MAX)
        if ended.problems:
            print(f"{name}, seed {seed}, fails:\n    " + "\n    ".join(ended.problems[:4]))
            return 1
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Clusters on simulated time, a seed each.")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, help="only this one, closely")
    parser.add_argument("--with", dest="kind", help="only those that have a client of this kind")
    parser.add_argument("--cpu", type=Path, help="a file for the seconds of CPU of each seed")
    parser.add_argument("--play", choices=sorted(PLAYS), help="a history that is written out, in place of storms")
    parser.add_argument("--seconds", type=float, default=60, help="of simulated time, with faults")
    parser.add_argument("--until-found", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--traces", type=Path, default=Path(".cache/simulation"))
    options = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        command = [sys.executable, "-m", "tests.simulation.run", *arguments]
        return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": HASH_SEED}).returncode
    if options.seed is not None:
        return look_closely(options.seed, options.seconds, options.traces, shrinks=options.shrink)
    if options.play is not None:
        return play_by_name(options.play, options.seeds)
    return _play_many(options)


def _play_many(options: argparse.Namespace) -> int:
    began, cpu_s, failed = time.monotonic(), 0.0, 0
    seeds = with_client(range(options.first, options.first + options.seeds), options.seconds, options.kind)
    for count, result in enumerate(play_all(seeds, options.seconds, options.workers), 1):
        if not count % SAID_EVERY:
            print(f"{count} seeds, {failed} fail", file=sys.stderr, flush=True)
        cpu_s += result.cpu_s
        if options.cpu is not None:
            with options.cpu.open("a") as file:
                file.write(f"{result.seed} {result.cpu_s:.2f} {'fails' if result.problems else 'passes'}\n")
        if result.problems:
            failed += 1
            shown = "\n    ".join(problem[:300] for problem in result.problems[:4])
            print(f"seed {result.seed} fails:\n    {shown}", flush=True)
            if options.until_found:
                return 1
    each_s = cpu_s / max(len(seeds), 1)
    print(f"{len(seeds)} seeds, {failed} fail; {time.monotonic() - began:.0f} s, {each_s:.2f} s of CPU each")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
