"""The server without sockets: a store in memory, a clock that stands still, and clients that speak in bytes."""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from typing import Any

from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.server.connection import Connection
from kpybroker.coordination.server.service import Service
from kpybroker.coordination.server.sessions import Limits
from tests.coordination.server.conversation import Session, connect

HEADER = struct.Struct(">iqi")


class Bench:
    """`now` moves only by the test. Changes are committed when the test, or a client that asks, lets them."""

    def __init__(self, limits: Limits | None = None, store: EmbeddedStore | None = None) -> None:
        self.now = 1_000.0
        self.store = store or EmbeddedStore.in_memory(lambda: int(self.now * 1000))
        self.passwords = iter(range(1, 1_000_000))
        self.service = Service(
            self.store,
            limits or Limits(),
            lambda: self.now,
            lambda: next(self.passwords).to_bytes(16, "big"),
            lambda: None,
        )
        self.store.observe(self.service)
        self.commit()

    def commit(self) -> None:
        """Commit what has changed: a store in memory has nothing to wait for."""
        finished(self.store.settle())

    def client(self, address: str = "127.0.0.1") -> Client:
        return Client(self, address)


def finished(waiting: Coroutine[Any, Any, None]) -> None:
    """Run what has nothing to wait for."""
    try:
        waiting.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


class Client:
    """One connection."""

    def __init__(self, bench: Bench, address: str) -> None:
        self.bench = bench
        self.is_aborted = False
        self.connection = Connection(bench.service, (address, 40_000), lambda: None, self._abort)
        self.peer = self.connection.client
        bench.service.add(self.peer)
        self._received = b""

    def _abort(self) -> None:
        self.is_aborted = True
        self.bench.service.remove(self.peer)

    def send(self, *frames: bytes) -> None:
        """Send frames, which are performed; nothing is committed."""
        self.send_bytes(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))

    def send_bytes(self, data: bytes) -> None:
        self.connection.receive(data)
        while self.connection.step():
            pass

    def text(self) -> str:
        """What has arrived, if it is not frames."""
        return self.peer.take().decode()

    def frames(self) -> list[bytes]:
        """What has arrived, without their lengths."""
        data = self.peer.take()
        self.peer.note_sent(len(data))
        frames = []
        while data:
            size = struct.unpack_from(">i", data)[0]
            frames.append(data[4 : 4 + size])
            data = data[4 + size :]
        return frames

    def ask_raw(self, *frames: bytes) -> list[bytes]:
        """Send, commit, and receive."""
        self.send(*frames)
        self.bench.commit()
        return self.frames()

    def connect(self, session_id: int = 0, password: bytes = bytes(16), timeout_ms: int = 30_000) -> Session:
        (result,) = self.ask_raw(connect(session_id, password, timeout_ms))
        return Session.of(result)

    def ask(self, op: int, body: bytes = b"", xid: int = 1) -> tuple[int, bytes]:
        """The error and the body of a response, which must be the only frame."""
        (frame,) = self.ask_raw(struct.pack(">ii", xid, op) + body)
        received_xid, _, error = HEADER.unpack_from(frame)
        assert received_xid == xid
        return error, frame[16:]

    def events(self) -> list[tuple[int, str]]:
        """Type and path of the watch events that have arrived; nothing else may have."""
        return [event_of(frame) for frame in self.frames()]


def event_of(frame: bytes) -> tuple[int, str]:
    xid, zxid, error = HEADER.unpack_from(frame)
    kind, state, size = struct.unpack_from(">iii", frame, 16)
    assert (xid, zxid, error, state) == (-1, -1, 0, 3)
    return kind, frame[28 : 28 + size].decode()
