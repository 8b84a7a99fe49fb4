"""Does the range of every dependency hold? Runs tests with the lowest and with the newest versions, on each Python.

    python -m compat_tests.packaging.ranges                       # a selection of the unit tests: 17 minutes
    python -m compat_tests.packaging.ranges 3.13 tests/storage    # on one Python, other tests

The tests are this tree's, in environments of their own under `.cache/ranges`, removed at the end. `make test` runs a
smoke test of both ends (`test_wheel.py`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from compat_tests.packaging import environments, pythons
from compat_tests.packaging.pythons import ROOT

PLACE = ROOT / ".cache" / "ranges"
TESTS = ("tests/cli", "tests/broker/requests", "tests/broker/loop", "tests/config", "tests/wire", "tests/coordination")
LOWEST_ON = pythons.VERSIONS[0]
"""The lowest versions have no wheels for the newest Pythons, whose users get newer versions."""


def check(version: str, ends: dict[str, list[str]], tests: list[str]) -> bool:
    """Run `tests` on one Python with the requirements of each end; whether it is here and all passed."""
    python = pythons.find(version)
    if python is None:
        print(f"{version}: not here, so its ranges are not known: make test-deps, or install it")
        return False
    passed = True
    for end, requirements in ends.items():
        fresh = environments.create(PLACE / f"{version}-{end}", python, requirements)
        done = subprocess.run(
            [fresh, "-m", "pytest", "-q", "-n", "2", *tests], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        print(f"{version} with the {end} versions: {done.stdout.splitlines()[-1]}", flush=True)
        if done.returncode:
            print(done.stdout)
            passed = False
    return passed


def main(arguments: list[str]) -> int:
    """Check every Python, or those of the arguments; 1 if a test failed, or one of them is not here."""
    chosen = [argument for argument in arguments if re.fullmatch(r"3\.\d+", argument)]
    tests = [argument for argument in arguments if argument not in chosen] or list(TESTS)
    own, for_tests = environments.dependencies(), environments.dependencies("test")
    this_tree = ["--editable", str(ROOT)]  # with its command, and its entry point of pytest
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        results = []
        for version in chosen or pythons.VERSIONS:
            ends = {"newest": [*this_tree, *for_tests]}
            if version == LOWEST_ON:
                ends["lowest"] = [*this_tree, *environments.lowest(own), *for_tests]
            results.append(check(version, ends, tests))
        return 0 if all(results) else 1
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
