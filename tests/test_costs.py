"""What `--costs-to` measures: `tests/costs.py`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.programs.pytest_runs import pytest_command, pytest_environment

BURNT_S = 0.3
BURN = f"import time\nwhile time.process_time() < {BURNT_S}: pass\n"
ITSELF = f"""
import time

def test_itself():
    end = time.process_time() + {BURNT_S}
    while time.process_time() < end: pass
"""
WAITED_FOR = f"""
import subprocess, sys

def test_a_process_that_has_ended():
    subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
"""
STILL_THERE = f"""
import subprocess, sys

RUNNING = []

def test_a_process_that_goes_on():
    code = {BURN!r} + "print(flush=True); input()"
    RUNNING.append(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    RUNNING[0].stdout.readline()
"""
NOTHING = """
def test_nothing():
    pass
"""


def costs_of(directory: Path, *options: str) -> dict[str, tuple[float, float]]:
    """By file: processor seconds and seconds."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    for name, tests in (("self", ITSELF), ("ended", WAITED_FOR), ("running", STILL_THERE), ("z", NOTHING)):
        (directory / f"test_{name}.py").write_text(tests)
    command = pytest_command("-p", "conftest", "--costs-to=costs.txt", *options)
    done = subprocess.run(command, cwd=directory, env=pytest_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (directory / "costs.txt").read_text().splitlines()
    costs = [float(line.split()[0]) for line in lines]
    assert costs == sorted(costs, reverse=True)
    return {line.split()[2]: (float(line.split()[0]), float(line.split()[1])) for line in lines}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_processor_time_of_a_file_is_its_own_and_that_of_its_processes(tmp_path: Path, workers: str) -> None:
    costs = costs_of(tmp_path, "-n", workers)
    files = {f"test_{name}.py" for name in ("self", "ended", "running", "z")}
    assert set(costs) == files | {"(collection)"} | ({"(controller)"} if workers == "2" else set())
    for file in sorted(files - {"test_z.py"}):
        assert costs[file][0] >= BURNT_S - 0.02, costs  # a clock tick or two are lost
    assert costs["test_z.py"][0] < BURNT_S
    assert costs["(collection)"][0] > 0
    assert costs["test_self.py"][1] >= BURNT_S
