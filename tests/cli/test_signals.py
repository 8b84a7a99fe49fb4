"""SIGTERM and SIGINT from outside: one stops the broker in order, even while clients wait; two end it at once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.schema import Message
from tests.cli.test_main import SECONDS_MAX, ready

TRIES = 100

TERM, INT = signal.SIGTERM, signal.SIGINT

# Where and how the broker is stuck. It prints a line first.
STUCK = {
    "the start, in a loop without a checkpoint": "LogManager.load = lambda *_: say() or spin()",
    "the stop, in a loop without a checkpoint": "LogManager.shutdown = lambda *_: say() or spin()",
    "the stop, waiting": "Broker._close_parts = wait",
}
PROGRAM = """
import os, signal, sys, threading, trio
from kpybroker.broker.app import Broker
from kpybroker.cli.main import main
from kpybroker.storage.directories.manager import LogManager

def say():
    print("stuck", flush=True)

def spin():
    while True:
        pass

async def wait(self):
    say()
    await trio.sleep_forever()

{patch}
sys.argv = ["kpybroker", "dev", "--port", "0", "--ephemeral"]
main()
"""


def until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(text):
            return
    raise AssertionError(f"it never said {text!r}")


@pytest.mark.parametrize(("first", "second"), [(TERM, TERM), (INT, INT), (TERM, INT)], ids=lambda number: number.name)
@pytest.mark.parametrize("where", STUCK)
def test_a_second_signal_ends_the_process_at_once(tmp_path: Path, where: str, first: int, second: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(patch=STUCK[where])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        if "stop" in where:
            until(process, "kpybroker ready at ")
            process.send_signal(first)
            until(process, "stuck")
        else:
            until(process, "stuck")
            process.send_signal(first)
        err = insist(process, second)
    finally:
        process.kill()
    # Python handles the lower number first if both are pending.
    assert process.returncode in (128 + first, 128 + second)
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []  # nor does it keep what --ephemeral promises to remove


def insist(process: subprocess.Popen[str], number: int) -> str:
    """Send it until the process has ended: two of a kind count as one until Python has handled the first."""
    for _ in range(TRIES):
        process.send_signal(number)
        try:
            return process.communicate(timeout=SECONDS_MAX / TRIES)[1]
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it goes on")


def send(client: socket.socket, key: ApiKey, request: Message, version: int) -> None:
    frame = encode_request_header(RequestHeader(key, version, 1, "c")) + encode(request, version)
    client.sendall(len(frame).to_bytes(4, "big") + frame)


@pytest.mark.parametrize("number", [TERM, INT], ids=lambda number: number.name)
def test_a_long_poll_does_not_hold_up_the_stop(tmp_path: Path, number: int) -> None:
    wait_ms = 10 * SECONDS_MAX * 1000
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    fetch = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])]
    )
    create = CreateTopicsRequest(
        timeout_ms=10_000, topics=[CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)]
    )
    with (
        ready("dev", "--port", "0", "--data-dir", str(tmp_path)) as (process, host, port),
        socket.create_connection((host, port), timeout=SECONDS_MAX) as client,
        socket.create_connection((host, port), timeout=SECONDS_MAX) as other,
    ):
        send(client, ApiKey.CREATE_TOPICS, create, 5)
        assert client.recv(1 << 16)
        send(client, ApiKey.FETCH, fetch, 4)
        send(other, ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
        assert other.recv(1 << 16)  # the fetch was sent before, so it waits by now
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS_MAX)
        assert client.recv(100) == b""
    assert (process.returncode, out) == (0, "")
    assert "shut down completed" in err
    assert "Traceback" not in err


HANG_UP = getattr(signal, "SIGHUP", None)


@pytest.fixture
def hang_up() -> Iterator[int]:
    """SIGHUP, which a run under nohup ignores, and its children with it."""
    if HANG_UP is None:
        pytest.skip("this platform has no SIGHUP")
    before = signal.signal(HANG_UP, signal.SIG_DFL)
    yield HANG_UP
    signal.signal(HANG_UP, before)


def test_a_terminal_that_is_closed_stops_the_broker_in_order(hang_up: int, tmp_path: Path) -> None:
    with ready("dev", "--port", "0", "--data-dir", str(tmp_path)) as (process, _, _):
        process.send_signal(hang_up)
        _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0
    assert "shut down completed" in err


@pytest.mark.skipif(HANG_UP is None, reason="this platform has no SIGHUP")
def test_under_nohup_a_closed_terminal_changes_nothing(tmp_path: Path) -> None:
    assert HANG_UP is not None
    command = ["nohup", sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(process, "kpybroker ready at ")
        process.send_signal(HANG_UP)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0  # 129 or 143 if the first had counted
    assert "shut down completed" in err
