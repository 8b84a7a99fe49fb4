"""Runs each test that has failed once more, alone and in a process of its own: `make test` does after a run.

A test that passes then has failed by chance: the run is green, and its name is printed as a defect. Put it into
`tests/failed_by_chance.txt`, one id a line with what was seen, until its cause is fixed. A test that fails again fails
the run, and so do more than `TESTS_MAX` failed tests: then it was no chance.

python -m tests.rerun FILE    # the ids, a line each, as `--failed-to=FILE` writes them
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS_MAX = 12
BY_CHANCE = "tests/failed_by_chance.txt"


def rerun(ids: list[str]) -> list[str]:
    """Run each test in a process of its own, in this directory; those that failed again."""
    failed = []
    for test_id in ids:
        print(f"rerun: {test_id}", flush=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test_id]
        if subprocess.run(command, check=False).returncode:
            failed.append(test_id)
    return failed


def main(arguments: list[str]) -> int:
    """0 if every test of the file passes now. 1 as well where the run before failed without a failed test."""
    file = Path(arguments[0])
    ids = file.read_text().splitlines() if file.is_file() else []
    if not ids or len(ids) > TESTS_MAX:
        print(f"rerun: {len(ids)} failed tests, not run again: 1 to {TESTS_MAX} are")
        return 1
    failed = rerun(ids)
    for test_id in ids:
        print(f"rerun: {'failed again' if test_id in failed else 'DEFECT, failed by chance'}: {test_id}")
    if not failed:
        print(f"rerun: passed alone; add to {BY_CHANCE}, and fix the cause")
    print(f"{len(ids) - len(failed)} passed, {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
