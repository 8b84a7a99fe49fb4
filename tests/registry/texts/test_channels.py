"""Workers as processes: their limits, what is left of them, and who starts them again."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from kpybroker.registry.texts.channels import Channel, Forked, Spawned, Workers
from kpybroker.registry.texts.frames import Frame
from kpybroker.registry.texts.questions import FORMAT, READ, Question, Reply, Source, read_reply
from kpybroker.system import IS_PORTABLE, of_the_system

CAN_FORK = of_the_system(os, "fork") is not None
CPU_S = 60.0
QUESTION = Question(READ, [Source("AVRO", '"int"', {})]).message()
LONG = f'syntax = "proto3"; /* {"x" * (20 << 20)} */ message A {{ int32 a = 1; }}'
FOR_PROTOC = Question(FORMAT, [Source("PROTOBUF", LONG, {})], "serialized").message()
"""It is read at once, and then protoc takes a while for it."""


@pytest.fixture(params=[pytest.param(Forked, marks=pytest.mark.skipif(not CAN_FORK, reason="no fork here")), Spawned])
def made_by(request: pytest.FixtureRequest) -> Iterator[Workers]:
    make: Callable[[], Workers] = request.param
    with closing(make()) as made:
        made.start()
        yield made


def made(by: Workers, number: int = 0) -> Channel:
    channel = by.make(number)
    assert channel is not None
    return channel


def reply(channel: Channel, message: bytes = QUESTION) -> Reply | None:
    frame = channel.ask(message, CPU_S)
    return None if frame is None else read_reply(frame.content)


def children() -> list[psutil.Process]:
    """Those of the registry's texts that have not ended."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # or a zombie
            if "registry.texts" in " ".join(one.cmdline()):
                found.append(one)
    return found


def test_a_worker_replies_and_ends_with_its_channel(made_by: Workers) -> None:
    first, second = made(made_by, 0), made(made_by, 1)
    assert reply(first) == reply(second) == Reply('"int"')
    first.end()
    assert reply(second) == Reply('"int"')
    assert reply(made(made_by, 0)) == Reply('"int"')
    second.end()


def test_a_text_that_takes_its_time_ends_the_worker(made_by: Workers) -> None:
    text = "[" + ",".join(["[]"] * 500_000) + "]"
    channel = made(made_by)
    frame = channel.ask(Question(READ, [Source("AVRO", text, {})]).message(), 0.01)
    assert frame is None
    assert channel.ask(QUESTION, CPU_S) is None
    assert reply(made(made_by)) == Reply('"int"')


def test_nothing_is_left_when_the_registry_ends(made_by: Workers) -> None:
    channel = made(made_by)
    assert reply(channel) is not None
    processes = children()
    assert processes
    made_by.close()
    channel.end()
    assert psutil.wait_procs(processes, CPU_S)[1] == []


@pytest.mark.skipif(not CAN_FORK, reason="no fork here")
def test_a_template_that_was_killed_is_started_again() -> None:
    with closing(Forked()) as forked:
        forked.start()
        assert reply(made(forked)) is not None
        (template,) = [one for one in children() if one.ppid() == psutil.Process().pid]
        template.kill()
        assert reply(made(forked, 1)) == Reply('"int"')


@pytest.mark.skipif(not CAN_FORK, reason="no fork here")
def test_no_directory_is_left_of_a_worker_that_ended_over_a_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with closing(Forked()) as forked:
        forked.start()
        for _ in range(3):
            channel = made(forked)
            (worker,) = [one for one in children() if one.ppid() != psutil.Process().pid]
            asking, found = asked(channel)
            assert eventually_used(tmp_path)
            worker.kill()
            asking.join(CPU_S)
            assert found == [None]
        assert reply(made(forked)) is not None
        assert len(list(tmp_path.rglob("*"))) <= 2, "the template's, and the worker's, which is empty"
    assert list(tmp_path.iterdir()) == []


SMALL = """
import os
from kpybroker.registry.texts import worker
worker.MEMORY_BYTES_MAX = 400 << 20
worker.serve(os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb"))
"""


@pytest.mark.skipif(sys.platform != "linux" or IS_PORTABLE, reason="only Linux limits the addresses of a process")
def test_a_text_that_needs_more_memory_is_refused_and_the_worker_gives_it_back() -> None:
    message = Question(READ, [Source("AVRO", "[" + '{"a":0},' * 2_000_000 + "{}]", {})]).message()
    process = subprocess.Popen([sys.executable, "-c", SMALL], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        channel = Channel(process.stdout, process.stdin, process.kill)
        assert channel.is_ready()
        assert reply(channel) == Reply('"int"')
        frame = channel.ask(message, CPU_S)
        assert frame is not None
        assert read_reply(frame.content).code == 42201
        assert "memory" in read_reply(frame.content).why
        assert frame.number == 1, "its last reply"


@pytest.mark.skipif(not CAN_FORK, reason="no fork here")
def test_a_worker_that_is_busy_ends_with_the_registry_and_leaves_no_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    forked = Forked()
    forked.start()
    channel = made(forked)
    asking, found = asked(channel)
    assert eventually_used(tmp_path)
    forked.close()
    asking.join(CPU_S)
    assert found == [None]
    assert list(tmp_path.iterdir()) == []


def asked(channel: Channel) -> tuple[threading.Thread, list[Frame | None]]:
    """Asks in a thread what protoc takes a while for; the list has the reply afterwards."""
    found: list[Frame | None] = []
    asking = threading.Thread(target=lambda: found.append(channel.ask(FOR_PROTOC, CPU_S)))
    asking.start()
    return asking, found


def eventually_used(directory: Path) -> bool:
    """Whether the worker has begun to write files for protoc."""
    deadline = time.monotonic() + CPU_S
    while time.monotonic() < deadline:
        if list(directory.glob("*/0/*")):
            return True
        time.sleep(0.001)
    return False
