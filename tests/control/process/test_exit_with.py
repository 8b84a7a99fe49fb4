"""A broker that ends with another process: in order if it can, by force if it cannot, also without pidfds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_main import SECONDS_MAX

PROGRAM = """
import os, sys, threading
from kpybroker.control.process import exit_with as module
{patch}
ended = threading.Event()
module.exit_with(int(sys.argv[1]), {stop}, lambda: print("forced", flush=True))
print("watches", flush=True)
ended.wait()
print("stopped", flush=True)
"""


@contextmanager
def other_process() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def watching(pid: int, patch: str = "", stop: str = "ended.set", portable: str = "0") -> subprocess.Popen[str]:
    program = PROGRAM.format(patch=patch, stop=stop)
    environment = {**os.environ, "KPYBROKER_PORTABLE": portable}
    return subprocess.Popen(
        [sys.executable, "-c", program, str(pid)], stdout=subprocess.PIPE, text=True, env=environment
    )


@pytest.mark.parametrize("portable", ["0", "1"])
def test_it_stops_when_the_other_process_is_killed(portable: str) -> None:
    with other_process() as other, watching(other.pid, portable=portable) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watches\n"
        assert process.poll() is None
        other.kill()
        other.wait()
        assert process.communicate(timeout=SECONDS_MAX)[0] == "stopped\n"
        assert process.returncode == 0


@pytest.mark.parametrize("portable", ["0", "1"])
def test_it_stops_at_once_if_there_is_no_such_process(portable: str) -> None:
    with other_process() as other:
        pass
    with watching(other.pid, portable=portable) as process:
        assert process.communicate(timeout=SECONDS_MAX)[0].endswith("stopped\n")


def test_what_does_not_stop_is_ended_by_force() -> None:
    with other_process() as other, watching(other.pid, "module.STOP_S_MAX = 0.1", "lambda: None") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watches\n"
        other.kill()
        other.wait()
        assert process.communicate(timeout=SECONDS_MAX)[0] == "forced\n"
        assert process.returncode == 1


BROKER = [sys.executable, "-P", "-m", "kpybroker", "dev", "--port", "0", "--ephemeral"]


def start(pid: int, directory: Path) -> subprocess.Popen[str]:
    command = [*BROKER, "--ephemeral-dir", str(directory), "--exit-with", str(pid)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def test_a_broker_stops_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "kpybroker-x"
    with other_process() as other, start(other.pid, directory) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("kpybroker ready at ")
        assert directory.exists()
        other.kill()
        other.wait()
        process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
    assert not directory.exists()


def test_a_broker_that_starts_after_the_end_of_the_process_does_not_stay(tmp_path: Path) -> None:
    directory = tmp_path / "kpybroker-x"
    with other_process() as other:
        pass
    with start(other.pid, directory) as process:
        process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
    assert not directory.exists()


def test_a_broker_whose_loop_is_stuck_is_ended_by_force(tmp_path: Path) -> None:
    directory = tmp_path / "kpybroker-x"
    patch = (
        "import sys; from kpybroker.control.process import exit_with as e; e.STOP_S_MAX = 0.2;"
        "from kpybroker.storage.directories.manager import LogManager;"
        "LogManager.shutdown = lambda *_: print('stuck', flush=True) or [0 for _ in iter(int, 1)];"
        "from kpybroker.cli.main import main; main()"
    )
    with other_process() as other:
        command = [sys.executable, "-c", patch, *BROKER[4:], "--ephemeral-dir", str(directory)]
        with subprocess.Popen(
            [*command, "--exit-with", str(other.pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("kpybroker ready at ")
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
            process.communicate(timeout=SECONDS_MAX)
            assert process.returncode == 1
    assert not directory.exists()
