"""The test process ends without a word: the broker ends too, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kpybroker.control.process.ephemeral import remove_stale
from kpybroker.testing import Broker
from tests.support.programs.leftovers import SECONDS_MAX, eventually, is_bound
from tests.support.programs.signals import freeze

PROGRAM = """
import os, signal, sys, tempfile
signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in a shell's background ignores it
tempfile.tempdir = {directory!r}
from kpybroker.testing import Broker, Cluster
broker = {make}.start()
print(broker.status()["pid"], broker.bootstrap_server.split(",")[0].rpartition(":")[2], broker.data_dir, flush=True)
{then}
"""


Program = tuple[subprocess.Popen[str], int, int, Path]


@contextmanager
def program(
    directory: Path, then: str, make: str = "Broker()"
) -> Iterator[tuple[subprocess.Popen[str], int, int, Path]]:
    """A test process, the process of its broker, its port and its directory."""
    text = PROGRAM.format(directory=str(directory), make=make, then=then)
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            pid, port, data_dir = process.stdout.readline().split()
            yield process, int(pid), int(port), Path(data_dir)
        finally:
            process.kill()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("make", ["Broker()", "Cluster(3)"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_test_process_that_is_killed_takes_its_broker_with_it(
    tmp_path: Path, number: signal.Signals, make: str
) -> None:
    with program(tmp_path, "input()", make) as (process, pid, port, directory):
        assert is_bound(port)
        assert directory.exists()
        process.send_signal(number)
        process.wait(SECONDS_MAX)
    eventually(lambda: not is_alive(pid), "the broker is left")
    eventually(lambda: not directory.exists(), "files are left")
    assert not is_bound(port)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("then", ["", "raise SystemExit(3)", "1 / 0", "del broker; import gc; gc.collect(); input()"])
def test_a_broker_that_is_not_stopped_ends_with_the_program(tmp_path: Path, then: str) -> None:
    with program(tmp_path, then) as (process, pid, port, directory):
        process.communicate("\n", timeout=SECONDS_MAX)
    eventually(lambda: not is_alive(pid), "the broker is left")
    assert not is_bound(port)
    assert not directory.exists()


def test_both_are_killed_and_the_next_start_removes_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(tmp_path, "input()") as (process, pid, port, directory):
        freeze(pid)  # so that it cannot see the end of the other
        process.kill()
        process.wait(SECONDS_MAX)
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the broker is left")
    assert directory.exists()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Broker():
        assert not directory.exists()
    assert not is_bound(port)


def test_of_a_broker_in_a_thread_the_next_start_removes_the_files(tmp_path: Path) -> None:
    with program(tmp_path, "input()", "Broker(in_thread=True)") as (process, pid, port, _):
        assert pid == process.pid
        process.kill()
        process.wait(SECONDS_MAX)
    assert not is_bound(port)
    remove_stale(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_fork_that_ends_leaves_the_broker_alone(tmp_path: Path) -> None:
    then = "import os\nif os.fork() == 0: raise SystemExit\nos.wait()\nprint(len(broker.topics()), flush=True)\ninput()"
    with program(tmp_path, then) as (process, pid, _, _):
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        assert is_alive(pid)
        process.communicate("\n", timeout=SECONDS_MAX)
    eventually(lambda: not is_alive(pid), "the broker is left")


def test_an_interrupt_of_the_terminal_reaches_the_test_only(tmp_path: Path) -> None:
    then = """
try:
    print("waits", flush=True)
    input()
except KeyboardInterrupt:
    print(len(broker.topics()), flush=True)
"""
    with program(tmp_path, then) as (process, pid, _, _):
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"  # an earlier interrupt would end it
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "0\n"
        process.wait(SECONDS_MAX)
    eventually(lambda: not is_alive(pid), "the broker is left")
