"""The mutants of the storms in the simulator: which seed is the first that finds each.

    python -m tests.simulation.mutants [NAME...] --seeds 200

A mutant is a patch of `compat_tests/faults/mutants` or of `tests/simulation/patches`, applied to a copy of the package
that the seeds are run with. The latter are subtler: a storm of real processes would hardly meet them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compat_tests.deps import ROOT
from compat_tests.faults.mutate import Mutant, build, mutants
from tests.simulation.plays import PLAYS

PATCHES = Path(__file__).with_name("patches")
RUN = (sys.executable, "-m", "tests.simulation.run")


def all_mutants() -> list[Mutant]:
    return [*mutants(), *mutants(PATCHES)]


def hunt(mutant: Mutant, seeds: int, workers: int) -> str | None:
    """What found it: a seed, or the play that is written out for it; None: nothing did."""
    with tempfile.TemporaryDirectory(prefix=f"simulated-{mutant.name}-") as directory:
        build(mutant, Path(directory))
        runs: list[tuple[str, ...]] = [("--until-found", "--seeds", str(seeds), "--workers", str(workers))]
        runs += [("--play", play, "--seeds", "5") for play in mutant.faults if play in PLAYS]
        for arguments in runs:
            done = subprocess.run(
                [*RUN, *arguments],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": ""},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                lines = [line.strip() for line in done.stdout.splitlines()]
                return "; ".join(lines[:2]) if lines else f"it does not run: {done.stderr[-300:]}"
    return None


def main(arguments: list[str]) -> int:
    known = {mutant.name: mutant for mutant in all_mutants()}
    parser = argparse.ArgumentParser(description="Run the seeds with each mutant until one finds it.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all without")
    parser.add_argument("--seeds", type=int, default=200, help="for each")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - known.keys():
        parser.error(f"no such mutants: {sorted(unknown)}; there are {sorted(known)}")
    surviving = []
    for name in options.names or known:
        began = time.monotonic()
        found = hunt(known[name], options.seeds, options.workers)
        if found is None:
            surviving.append(name)
        print(f"{name}: {found or 'SURVIVES'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(surviving)} survive {options.seeds} seeds: {surviving}" if surviving else "all found")
    return int(bool(surviving))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
