"""The mutants of the storms in the simulator: which seed is the first that finds each.

    python -m tests.simulation.mutants [NAME...] --seeds 200

A mutant is a patch of `compat_tests/faults/mutants`, applied to a copy of the package that the seeds are run with.
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
from compat_tests.faults.mutate import SHARE, Mutant, build, mutants

RUN = (sys.executable, "-m", "tests.simulation.run")


def hunt(mutant: Mutant, seeds: int, workers: int) -> str | None:
    """What found it; None: nothing did."""
    with tempfile.TemporaryDirectory(prefix=f"simulated-{mutant.name}-") as directory:
        build(mutant, Path(directory))
        done = subprocess.run(
            [*RUN, "--until-found", "--seeds", str(seeds), "--workers", str(workers)],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": ""},
            capture_output=True,
            text=True,
        )
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stdout.splitlines()]
    return "; ".join(lines[:2]) if lines else f"it does not run: {done.stderr[-300:]}"


def main(arguments: list[str]) -> int:
    known = {mutant.name: mutant for mutant in mutants() if SHARE not in mutant.faults}
    parser = argparse.ArgumentParser(description="Run the seeds with each mutant until one finds it.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all without, but those of share groups")
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
