"""The same requests, in bytes, to the server of the embedded tree and to a real ZooKeeper: the same responses.

Ours runs here without sockets. `KPYBROKER_RECORD=1` writes the recording that the unit tests compare with.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Protocol

import pytest

from kpybroker.coordination.server.connection import ClientError
from tests.coordination.server import conversation as c
from tests.coordination.server.harness import Bench, Client
from tests.support.programs.zookeeper import ZooKeeperServer, zookeeper

OPERATIONS = 600
NAMES = ("a", "b")
ALICE, NO_ONE = b"alice:secret", b""
ACLS = (
    *[c.OPEN] * 12,
    c.acl((1, "world", "anyone"), (31, "ip", "127.0.0.0/8")),
    c.acl((29, "world", "anyone"), (2, "auth", "")),
    c.acl((28, "world", "anyone"), (1, "digest", "alice:9/zz2Hhl7PkzS8uWsqbLSI3Sd9o=")),
    c.acl((31, "auth", ""), (31, "auth", "")),
    c.acl((31, "ip", "10.0.0.1")),
    c.acl(),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper"), forceSync="no") as running:
        yield running


class Raw(Protocol):
    """A connection that sends frames, and receives until the response to a ping."""

    def open(self, session_id: int, password: bytes) -> c.Session: ...

    def exchange(self, *requests: bytes) -> list[bytes]: ...

    def close(self) -> None: ...


class Theirs:
    def __init__(self, server: ZooKeeperServer) -> None:
        self._address = (server.host, server.port)

    def open(self, session_id: int = 0, password: bytes = bytes(16)) -> c.Session:
        self._sock = socket.create_connection(self._address, 60)
        self._stream = self._sock.makefile("rb")
        self._send(c.connect(session_id, password))
        return c.Session.of(self._receive())

    def exchange(self, *requests: bytes) -> list[bytes]:
        for frame in (*requests, c.PING):
            self._send(frame)
        frames = []
        while frame := self._receive():
            if struct.unpack_from(">i", frame)[0] == c.PING_XID:
                break
            frames.append(frame)
        return frames

    def close(self) -> None:
        self._stream.close()
        self._sock.close()

    def _send(self, frame: bytes) -> None:
        try:
            self._sock.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError:
            pass  # it has closed the connection, as some requests make it do

    def _receive(self) -> bytes:
        try:
            size = self._stream.read(4)
            return self._stream.read(struct.unpack(">i", size)[0]) if size else b""
        except ConnectionResetError:
            return b""


class Ours:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def open(self, session_id: int = 0, password: bytes = bytes(16)) -> c.Session:
        self._client: Client = self._bench.client()
        return self._client.connect(session_id, password)

    def exchange(self, *requests: bytes) -> list[bytes]:
        try:
            return c.until_ping(self._client.ask_raw(*requests, c.PING))
        except ClientError:
            return []

    def close(self) -> None:
        self._bench.service.remove(self._client.peer)


# --- one conversation


def test_the_recording_is_what_a_real_zookeeper_says(tmp_path: Path) -> None:
    def connections() -> Iterator[c.Exchange]:
        while True:
            theirs = Theirs(running)
            theirs.open()
            opened.callback(theirs.close)
            yield theirs.exchange

    with zookeeper(tmp_path / "fresh", forceSync="no") as running, ExitStack() as opened:
        found = c.conversation(connections())
    if os.environ.get("KPYBROKER_RECORD"):
        c.RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    assert c.difference(found, c.recorded()) == {}


# --- any conversation


def any_path(random: Random, top: str) -> str:
    return top + "".join("/" + random.choice(NAMES) for _ in range(random.randint(0, 3)))


def any_write(random: Random, top: str) -> tuple[int, bytes]:
    path, version = any_path(random, top), random.choice((-1, -1, 0, 1))
    match random.randint(0, 7):
        case 0 | 1 | 2:
            below = f"{any_path(random, top)}/{random.choice(NAMES)}"
            return random.choice((1, 15)), c.create(
                below, random.choice((b"x", None)), random.choice(ACLS), random.choice((0, 0, 0, 1, 2, 3))
            )
        case 3:
            return 19, c.create(path, flags=4)
        case 4:
            return 5, c.set_data(path, random.choice((random.randbytes(3), b"", None)), version)
        case 5 | 6:
            return 2, c.versioned(path, version)
        case _:
            return 13, c.versioned(path, version)


def any_request(random: Random, top: str, watches: bool, seen: int) -> tuple[int, bytes]:
    path, watch = any_path(random, top), watches and random.random() < 0.5
    match random.randint(0, 15):
        case 0:
            return 4, c.read(path, watch)
        case 1:
            return 3, c.read(path, watch)
        case 2:
            return random.choice((8, 12)), c.read(path, watch)
        case 3:
            return c.MULTI, c.multi(*(any_write(random, top) for _ in range(random.randint(1, 4))))
        case 4:
            return c.MULTI_READ, c.multi(*((random.choice((4, 8)), c.read(any_path(random, top))) for _ in range(3)))
        case 5:
            return 6, c.text(path)
        case 6:
            return 7, c.text(path) + random.choice(ACLS) + struct.pack(">i", random.choice((-1, 0)))
        case 7:
            return 104, c.text(path)
        case 8:
            return 103, c.text(top)
        case 9 if watches:
            paths = [(any_path(random, top), any_path(random, top)) for _ in range(3)]
            return 101, c.set_watches(seen, *paths)
        case 10:
            # 3.8 finds watches of other clients where it is asked for one (17), and halves those that stay
            return 18, c.versioned(path, random.choice((1, 2, 3)) if watches else 3)
        case _:
            op, body = any_write(random, top)
            return (5, c.set_data(path, b"y")) if op == 13 else (op, body)


def run(raws: list[Raw], seed: int) -> Iterator[object]:
    """What both clients receive. The first watches once, and is logged in; the second watches all that is below."""
    random, ranks, top = Random(seed), c.Ranks(), f"/top{seed}"
    sessions = [raw.open(0, bytes(16)) for raw in raws]
    setup = [(0, 100, c.auth("digest", ALICE)), (0, 1, c.create(top)), (1, 106, c.versioned(top, 1))]
    seen, requests = [1, 1], 0

    def ask(who: int, op: int, body: bytes) -> list[list[str]]:
        received: list[list[bytes]] = [[], []]
        received[who] = raws[who].exchange(struct.pack(">ii", 5, op) + body)
        received[1 - who] = raws[1 - who].exchange()
        for frame in received[who][-1:]:
            seen[who] = max(seen[who], struct.unpack_from(">q", frame, 4)[0])
        return [[c.canonical(op, frame, ranks).hex() for frame in c.until_ping(frames)] for frames in received]

    for who, op, body in setup:
        yield op, ask(who, op, body)
    while requests < OPERATIONS:
        requests += 1
        who, zxid = random.randint(0, 1), seen[0]
        if random.random() < 0.03:
            ends = random.random() < 0.5
            if ends:
                yield "ends", sorted(map(sorted, ask(who, c.CLOSE, b"")))
            raws[who].close()
            before = sessions[who]
            sessions[who] = raws[who].open(*((0, bytes(16)) if ends else (before.id, before.password)))
            yield "connected again", ends or sessions[who] == before
            again = (100, c.auth("digest", ALICE)) if who == 0 else (106, c.versioned(top, 1))
            yield again[0], ask(who, *again)
        for _ in range(random.randint(0, 2)):
            op, body = any_request(random, top, who == 0, zxid)
            yield op, b"" if op == 101 else body, ask(who, op, body)
    for raw in raws:
        raw.exchange(struct.pack(">ii", 6, c.CLOSE))
        raw.close()


@contextmanager
def two(kind: str, server: ZooKeeperServer) -> Iterator[list[Raw]]:
    bench = Bench()
    yield [Theirs(server), Theirs(server)] if kind == "theirs" else [Ours(bench), Ours(bench)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 8))])
def test_every_conversation_is_the_same(seed: int, server: ZooKeeperServer) -> None:
    with two("theirs", server) as theirs:
        expected = list(run(theirs, seed))
    with two("ours", server) as ours:
        found = list(run(ours, seed))
    assert len({str(one) for one in expected}) > OPERATIONS / 3  # it is varied
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, f"operation {number}: ours, then ZooKeeper's"
