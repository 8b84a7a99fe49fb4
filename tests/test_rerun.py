"""What a run does with tests that have failed: `--failed-to` of `conftest.py`, and `tests/rerun.py`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import rerun
from tests.support.programs.pytest_runs import pytest_command, pytest_environment

TESTS = """
from pathlib import Path

import pytest

def test_passes():
    pass

@pytest.mark.parametrize("which", ["once", "always"])
def test_fails(which):
    seen = Path(f"{which}.seen")
    was_run = seen.exists()
    seen.touch()
    assert was_run and which == "once"

@pytest.fixture
def broken():
    raise OSError("no room")

def test_has_no_fixture(broken):
    pass
"""


INTERRUPTED = """
def test_fails():
    assert False

def test_is_interrupted():
    raise KeyboardInterrupt
"""


def failed_of(directory: Path, *options: str) -> list[str]:
    """The ids that a run of `TESTS` writes down."""
    done = run(directory, TESTS, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    return (directory / "failed.txt").read_text().splitlines()


def run(directory: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run that writes `failed.txt`."""
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = pytest_command("-p", "conftest", "--failed-to=failed.txt", *options, "test_it.py")
    return subprocess.run(command, cwd=directory, env=pytest_environment(), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_writes_down_what_failed(tmp_path: Path, workers: str) -> None:
    failed = failed_of(tmp_path, "-n", workers)
    assert sorted(failed) == [
        "test_it.py::test_fails[always]",
        "test_it.py::test_fails[once]",
        "test_it.py::test_has_no_fixture",
    ]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_says_what_failed_before_its_end(tmp_path: Path, workers: str) -> None:
    said = run(tmp_path, TESTS, "-n", workers).stdout.partition("= FAILURES =")[0].splitlines()
    failed = [line.split()[1] for line in said if line.startswith("FAILED ")]
    assert sorted(failed) == [
        "test_it.py::test_fails[always]",
        "test_it.py::test_fails[once]",
        "test_it.py::test_has_no_fixture",
    ]


def test_a_run_that_was_interrupted_is_not_run_again(tmp_path: Path) -> None:
    assert run(tmp_path, INTERRUPTED).returncode == 2
    assert rerun.main([str(tmp_path / "failed.txt")]) == 1


def test_what_fails_again_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    failed_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert rerun.main(["failed.txt"]) == 1
    printed = capfd.readouterr().out
    assert "rerun: DEFECT, failed by chance: test_it.py::test_fails[once]" in printed
    assert "rerun: failed again: test_it.py::test_fails[always]" in printed
    assert "rerun: failed again: test_it.py::test_has_no_fixture" in printed


def test_a_run_is_green_if_all_of_it_passes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("failed.txt").write_text("test_it.py::test_fails[once]\n")
    assert rerun.main(["failed.txt"]) == 0


def test_a_run_that_failed_otherwise_stays_failed(tmp_path: Path) -> None:
    assert rerun.main([str(tmp_path / "absent.txt")]) == 1
    many = tmp_path / "many.txt"
    many.write_text("".join(f"test_it.py::test_{number}\n" for number in range(rerun.TESTS_MAX + 1)))
    assert rerun.main([str(many)]) == 1
