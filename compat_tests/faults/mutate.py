"""`make mutants`: brokers with one thing wrong each, and whether the storm finds it.

    python -m compat_tests.faults.mutate [NAME...] --minutes 4

A mutant is a patch in `mutants/`, applied to a copy of the package. Its first lines say what is wrong with it and which
faults are drawn, or which scenario is played; it runs seed after seed until it finds a problem, or time is up. There
are applications with groups where faults hurt those. Those of share groups run in a storm of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.deps import ROOT
from compat_tests.faults.check import Problem
from compat_tests.faults.faults import OF_MEMBERS
from compat_tests.faults.groups.applications import GROUPS
from compat_tests.faults.scenarios import SCENARIOS
from compat_tests.faults.share_groups import storm as share_storm
from compat_tests.faults.share_groups.check import Problem as ShareProblem
from compat_tests.faults.soak import Storm, run_seed

PATCHES = Path(__file__).with_name("mutants")
SEED_S = 40.0
SCENARIO_S = 1.0
"""One round."""
SHARE, SHARE_KILLS = "share", 2
"""In the place of faults: the storm of share groups, on one broker, with so many kills a seed."""
LAUNCHER = """#!{python}
import os, sys
sys.path.insert(0, {directory!r})
os.environ["PYTHONPATH"] = {directory!r}
from kpybroker.cli.main import main
sys.exit(main())
"""


Found = Problem | ShareProblem


class Mutant(NamedTuple):
    name: str
    what: str
    faults: tuple[str, ...]
    patch: Path


def mutants(patches: Path = PATCHES) -> list[Mutant]:
    """Those of a directory. The head of a patch is `What: ...` and `Faults: ...`."""
    return [_read(path) for path in sorted(patches.glob("*.patch"))]


def _read(path: Path) -> Mutant:
    head = dict(line.split(": ", 1) for line in path.read_text().splitlines()[:2])
    return Mutant(path.stem, head["What"], tuple(head["Faults"].split()), path)


def build(mutant: Mutant, directory: Path) -> Path:
    """A copy of the package with the patch applied; returns its `kpybroker`."""
    shutil.copytree(ROOT / "kpybroker", directory / "kpybroker", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        ["git", "apply", "-C1", str(mutant.patch)], cwd=directory, capture_output=True, text=True, env=_no_repository()
    )
    if done.returncode:
        raise ValueError(f"{mutant.name} does not apply: {done.stderr}")
    executable = directory / "kpybroker-mutant"
    executable.write_text(LAUNCHER.format(python=sys.executable, directory=str(directory)))
    executable.chmod(0o755)
    return executable


def _no_repository() -> dict[str, str]:
    """git apply works on plain files where it sees no repository."""
    return {**os.environ, "GIT_DIR": os.devnull}


@contextlib.contextmanager
def installed(mutant: Mutant) -> Iterator[None]:
    """Brokers that are started within it are the mutant."""
    directory = Path(tempfile.mkdtemp(prefix=f"mutant-{mutant.name}-"))
    before = os.environ.get("KPYBROKER")
    os.environ["KPYBROKER"] = str(build(mutant, directory))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(directory / "kpybroker")], check=True)
    try:
        yield
    finally:
        del os.environ["KPYBROKER"]
        if before is not None:
            os.environ["KPYBROKER"] = before
        shutil.rmtree(directory, ignore_errors=True)


def hunt(mutant: Mutant, seconds: float, first_seed: int, *, version: int, aloud: bool) -> Sequence[Found]:
    """Seed after seed, until something is found or time is up; `version` is that of transactions."""
    if SHARE in mutant.faults:
        return _hunt_in_share_groups(mutant, seconds, first_seed, print if aloud else _silent)
    end = time.monotonic() + seconds
    longest = SCENARIO_S if SCENARIOS.keys() >= set(mutant.faults) else SEED_S
    with installed(mutant):
        seed = first_seed
        while time.monotonic() < end:
            with contextlib.nullcontext() if aloud else contextlib.redirect_stdout(io.StringIO()):
                groups = GROUPS if OF_MEMBERS & set(mutant.faults) else {}
                left_s = min(longest, end - time.monotonic())
                storm = Storm("kpybroker", left_s, mutant.faults, groups=groups, transaction_version=version)
                problems = run_seed(storm, seed, keep="none")
            if problems:
                return problems
            seed += 1
    return []


def _hunt_in_share_groups(
    mutant: Mutant, seconds: float, first_seed: int, tell: Callable[[str], None]
) -> Sequence[Found]:
    end = time.monotonic() + seconds
    with installed(mutant):
        for seed in itertools.count(first_seed):
            if time.monotonic() >= end:
                break
            with tempfile.TemporaryDirectory(prefix="share-storm-", ignore_cleanup_errors=True) as directory:
                problems = share_storm.run(Path(directory), seed, SHARE_KILLS, tell=tell)
            if problems:
                return problems
    return []


def _silent(_: str) -> None:
    """Say nothing."""


def main(arguments: list[str]) -> int:
    known = {mutant.name: mutant for mutant in mutants()}
    parser = argparse.ArgumentParser(description="Run each mutant until it is found.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all without")
    parser.add_argument("--minutes", type=float, default=4, help="for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aloud", action="store_true", help="tell what happens in each run")
    parser.add_argument("--transaction-version", type=int, choices=(1, 2), default=1, help="of clients that know both")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - known.keys():
        parser.error(f"no such mutants: {sorted(unknown)}; there are {sorted(known)}")
    surviving = []
    for name in options.names or known:
        began = time.monotonic()
        problems = hunt(
            known[name],
            options.minutes * 60,
            options.seed,
            version=options.transaction_version,
            aloud=options.aloud,
        )
        took = f"{time.monotonic() - began:.0f} s"
        if problems:
            kinds = ", ".join(dict.fromkeys(problem.kind for problem in problems))
            print(f"{name}: found after {took} by: {kinds}\n    {str(problems[0])[:200]}", flush=True)
        else:
            surviving.append(name)
            print(f"{name}: SURVIVES {took}: {known[name].what}", flush=True)
    print(f"{len(surviving)} survive: {surviving}" if surviving else "all found")
    return 1 if surviving else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
