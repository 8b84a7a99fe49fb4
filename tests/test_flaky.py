"""The search for tests that fail by chance: `tests/flaky.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import flaky
from tests.support.programs.leftovers import eventually
from tests.support.programs.pytest_runs import OTHER_PLUGINS, pytest_environment

LOAD = "import signal\nsignal.pause()"
TESTS = f"""
import os
import psutil

def loops():
    return [one for one in psutil.Process().parents()[1].children() if {LOAD!r} in one.cmdline()]

def test_passes():
    pass

def test_that_load_makes_fail():
    assert not loops()

def test_has_as_much_load_as_was_said():
    assert len(loops()) == ({flaky.LOOPS} if os.environ["PYTEST_XDIST_WORKER_COUNT"] == "2" else 0)

def test_that_needs_another_worker():
    assert os.environ["PYTEST_XDIST_WORKER_COUNT"] == "2"

def test_fails():
    assert False
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of tests, and in it what this module runs in place of load."""
    plugins = " ".join(f"-p no:{name}" for name in OTHER_PLUGINS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -p conftest {plugins}\n")
    for name in set(os.environ) - set(pytest_environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", pytest_environment()["PYTHONPATH"])
    monkeypatch.setenv("WORKERS", "2")
    monkeypatch.setattr(flaky, "LOOP", LOAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_failed_in_either_run_is_listed(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "test_it.py").write_text(TESTS)
    assert flaky.main(["test_it.py"]) == 1
    printed = capfd.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("flaky: ")] == [
        "flaky: load: 2 tests failed",
        "flaky: test_it.py::test_that_load_makes_fail failed with load",
        "flaky: test_it.py::test_fails failed with load and with one worker",
        "flaky: test_it.py::test_that_needs_another_worker failed with one worker",
        "flaky: failed tests: 2 with load, 2 with one worker",
    ], printed


def test_each_run_under_load_is_named(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "test_it.py").write_text(
        "from pathlib import Path\nimport os\n"
        "def test_fails_the_second_time():\n"
        "    made = Path('made'); first = not made.exists(); made.touch()\n"
        "    assert first or os.environ['PYTEST_XDIST_WORKER_COUNT'] == '1'\n"
    )
    assert flaky.main(["test_it.py", "--times", "2"]) == 1
    assert [line for line in capfd.readouterr().out.splitlines() if line.startswith("flaky: ")] == [
        "flaky: load: 0 tests failed",
        "flaky: load (2): 1 tests failed",
        "flaky: test_it.py::test_fails_the_second_time failed with load (2)",
        "flaky: failed tests: 0 with load, 1 with load (2), 0 with one worker",
    ]


def test_a_run_without_a_failure_is_green(project: Path) -> None:
    (project / "test_it.py").write_text("def test_passes(): ...")
    assert flaky.main(["test_it.py"]) == 0


def test_a_run_that_pytest_ends_is_an_error(project: Path) -> None:
    with pytest.raises(SystemExit, match="pytest ended with exit code"):
        flaky.main(["test_absent.py"])


def test_load_ends_with_the_process_that_made_it(tmp_path: Path) -> None:
    code = "from tests.flaky import load\nimport subprocess, os\nwith load(): print(os.getpid(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=pytest_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        children = Path(f"/proc/{process.stdout.readline().strip()}/task/{process.pid}/children").read_text().split()
        assert len(children) == flaky.LOOPS
        process.kill()
    eventually(lambda: not [pid for pid in children if os.path.exists(f"/proc/{pid}")], "the end of the loops")
