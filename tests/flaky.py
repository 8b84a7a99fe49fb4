"""Finds tests that fail by chance: runs them under load, then with one worker, and lists those that failed.

Load is two processes that use all the processor time they get, at the tests' own priority. A test that fails then
waits for a time instead of a condition, or relies on what another test left.

    python -m tests.flaky                 # all: as long as two or three runs of `make test`
    python -m tests.flaky tests/storage   # some; `make flaky FLAKY=tests/storage` does the same
    python -m tests.flaky --times 3       # under load three times: what fails one time of three is seen
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LOOPS = 2
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"
"""Ends with the process that started it, however that ends."""
EVERYTHING = ("compat_tests", "tests")
SOME_FAILED = 1
"""Pytest's exit code. Of those above it none is about tests."""


@contextmanager
def load() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def failed_of(paths: Sequence[str], workers: str) -> list[str]:
    """Run the tests in this directory; the ids of those that failed."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "failed.txt")
        command = [sys.executable, "-m", "pytest", "-n", workers, f"--failed-to={file}", *paths]
        code = subprocess.run(command, check=False).returncode
        if code > SOME_FAILED:
            raise SystemExit(f"flaky: pytest ended with exit code {code}, see above")
        return file.read_text().splitlines()


def main(arguments: Sequence[str]) -> int:
    """1 if a test failed in one of the runs."""
    parser = argparse.ArgumentParser(prog="flaky", description="Find tests that fail by chance.")
    parser.add_argument("paths", nargs="*", default=EVERYTHING)
    parser.add_argument("--times", type=int, default=1, help="runs under load (default: 1)")
    chosen = parser.parse_args(arguments)
    runs = {}
    with load():
        for number in range(chosen.times):
            name = "load" if not number else f"load ({number + 1})"
            runs[name] = failed_of(chosen.paths, os.environ.get("WORKERS", "3"))
            print(f"flaky: {name}: {len(runs[name])} tests failed", flush=True)
    runs["one worker"] = failed_of(chosen.paths, "1")
    for test_id in dict.fromkeys(failed for ids in runs.values() for failed in ids):
        print(f"flaky: {test_id} failed with {' and with '.join(name for name, ids in runs.items() if test_id in ids)}")
    print("flaky: failed tests: " + ", ".join(f"{len(ids)} with {name}" for name, ids in runs.items()))
    return int(any(runs.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
