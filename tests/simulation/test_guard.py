"""In a simulated world every way to the real one is an error, and outside of it none."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.simulation.seams.guard import RealWorld
from tests.simulation.world import World, simulate

A_PROCESS = "a process"
WAYS: dict[str, Callable[[], object]] = {
    "a socket that listens": lambda: socket.socket().bind(("127.0.0.1", 0)),
    "a socket that connects": lambda: socket.socket().connect(("127.0.0.1", 1)),
    "a file that is read": lambda: Path("/etc/hostname").read_bytes(),
    "a file that is written": lambda: Path("/tmp/simulation").write_bytes(b""),
    "a thread": lambda: threading.Thread(target=int).start(),
    A_PROCESS: lambda: subprocess.run([sys.executable, "-c", ""]),
    "the wall clock": lambda: time.time(),
    "the wall clock in nanoseconds": lambda: time.time_ns(),
    "the monotonic clock": lambda: time.monotonic(),
    "a pause": lambda: time.sleep(0),
    "the system's randomness": lambda: os.urandom(1),
    "an id of the system's": lambda: uuid.uuid4(),
    "Python's generator": lambda: random.random(),
}


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[pytest.mark.not_quick] if way == A_PROCESS else []) for way in WAYS]
)
def test_the_real_world_is_an_error(way: str) -> None:
    async def play(world: World) -> None:
        with pytest.raises(RealWorld):
            WAYS[way]()
        world.trace.add("test", "refused")

    assert simulate(1, play).problems == []


def test_a_task_that_reaches_it_is_a_problem_of_the_world() -> None:
    async def play(world: World) -> None:
        await trio.sleep(1)
        time.time()

    (problem,) = simulate(1, play).problems
    assert "RealWorld" in problem


def test_another_thread_is_not_concerned() -> None:
    asked, responded = threading.Event(), threading.Event()

    def tell() -> None:
        asked.wait()
        assert time.time() > 0
        responded.set()

    thread = threading.Thread(target=tell)
    thread.start()

    async def play(world: World) -> None:
        asked.set()
        assert responded.wait(60)

    assert simulate(1, play).problems == []
    thread.join()


def test_outside_of_a_world_nothing_is_refused() -> None:
    async def play(world: World) -> None:
        await trio.sleep(1)

    simulate(1, play)
    assert time.time() > 0
    assert os.urandom(4)
    with tempfile.TemporaryFile() as file:
        file.write(b"x")


def test_threads_become_simulated_work_at_simulated_times() -> None:
    async def play(world: World) -> None:
        before = trio.current_time()
        assert await trio.to_thread.run_sync(threading.get_ident) == threading.get_ident()
        assert 0 < trio.current_time() - before < 0.1
        world.work.slow_s = 100
        before = trio.current_time()
        await trio.to_thread.run_sync(int)
        assert trio.current_time() - before > 1

    assert simulate(1, play).problems == []
