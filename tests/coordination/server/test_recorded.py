"""Byte for byte, but for zxids and times, the responses are those of a real ZooKeeper 3.8.4.

`python -m pytest tests/coordination/server/test_recorded.py -k real` fails where the recording is not what ZooKeeper
says; with `KPYBROKER_RECORD=1` it writes the recording.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.coordination.server.conversation import (
    ENDS,
    PING,
    PING_XID,
    STEPS,
    Exchange,
    Ranks,
    Session,
    Step,
    connect,
    play,
)
from tests.coordination.server.harness import Bench
from tests.support.zookeeper import ZooKeeperServer

RECORDED = Path(__file__).parent / "recorded.json"


def conversation(open_connection: Iterator[Exchange]) -> dict[str, list[str]]:
    """All steps, the last ones with connections of their own."""
    ranks = Ranks()
    found = dict(play(next(open_connection), STEPS, ranks))
    for step in ENDS:
        found.update(play(next(open_connection), (step,), ranks))
    return found


def difference(found: dict[str, list[str]], expected: dict[str, list[str]]) -> dict[str, tuple[object, object]]:
    return {
        name: (found.get(name), expected.get(name))
        for name in {**found, **expected}
        if found.get(name) != expected.get(name)
    }


# --- ours


def ours() -> Iterator[Exchange]:
    bench = Bench()
    while True:
        client = bench.client()
        Session.of(client.ask_raw(connect())[0])

        def exchange(request: bytes, client=client) -> list[bytes]:  # type: ignore[no-untyped-def]
            return until_ping(client.ask_raw(request, PING))

        yield exchange


def until_ping(frames: list[bytes]) -> list[bytes]:
    return [frame for frame in frames if struct.unpack_from(">i", frame)[0] != PING_XID]


def test_the_responses_are_zookeepers() -> None:
    assert difference(conversation(ours()), json.loads(RECORDED.read_text())) == {}


def test_names_of_steps_are_their_own() -> None:
    steps: tuple[Step, ...] = (*STEPS, *ENDS)
    assert len({step.name for step in steps}) == len(steps)


# --- ZooKeeper's


@contextmanager
def connected(server: ZooKeeperServer) -> Iterator[Exchange]:
    with socket.create_connection((server.host, server.port), 60) as sock, sock.makefile("rb") as stream:

        def send(frame: bytes) -> None:
            sock.sendall(struct.pack(">i", len(frame)) + frame)

        def receive() -> bytes:
            size = stream.read(4)
            return stream.read(struct.unpack(">i", size)[0]) if size else b""

        def exchange(request: bytes) -> list[bytes]:
            send(request)
            try:
                send(PING)
            except OSError:
                pass  # it has closed the connection
            frames = []
            while frame := receive():
                if struct.unpack_from(">i", frame)[0] == PING_XID:
                    break
                frames.append(frame)
            return frames

        send(connect())
        Session.of(receive())
        yield exchange


def theirs(server: ZooKeeperServer) -> Iterator[Exchange]:
    while True:
        with connected(server) as exchange:
            yield exchange


def test_the_recording_is_what_a_real_zookeeper_says(own_server: ZooKeeperServer) -> None:
    found = conversation(theirs(own_server))
    if os.environ.get("KPYBROKER_RECORD"):
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
        pytest.skip("recorded")
    assert difference(found, json.loads(RECORDED.read_text())) == {}
