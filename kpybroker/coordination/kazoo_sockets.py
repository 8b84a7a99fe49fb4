"""The sockets that kazoo gets, with which a request costs it a system call or two in place of eight.

In each call kazoo's thread lets go of the interpreter's lock, and waits for it again: milliseconds while the loop has
work. A new controller's ten thousand requests took more time by that than by all else.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from threading import Lock
from typing import Any

RECEIVE_BYTES = 64 * 1024
ROOM_SECONDS_MAX = 10.0
"""Of a server that reads nothing."""
SENT_MAX = 16
"""Requests after which the connection is looked at before the next: a server may send nothing more, and read nothing
more, until its responses are read."""


class ServerSocket(socket.socket):
    """A connection to a server without TLS. What there is to read is read at once, and handed out as it is wanted."""

    def __init__(self, connection: socket.socket) -> None:
        timeout = connection.gettimeout()
        super().__init__(connection.family, connection.type, connection.proto, connection.detach())
        self.settimeout(timeout)
        self._received = memoryview(b"")
        self.has_room = True
        """Whether the last `send` left room, so that no one need wait for it before the next."""

    def pending(self) -> int:
        """Bytes that were read and not handed out yet. kazoo reads on without waiting where there are some."""
        return len(self._received)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """At most `size` bytes: of those that were read before, if there are some."""
        if not self._received:
            self._received = memoryview(super().recv(max(size, RECEIVE_BYTES), flags))
        wanted, self._received = self._received[:size], self._received[size:]
        return bytes(wanted)

    def send(self, data: Any, flags: int = 0) -> int:
        """As of any socket, but it waits for room where there is none: kazoo did not."""
        try:
            sent = super().send(data, flags)
        except BlockingIOError:
            self.settimeout(ROOM_SECONDS_MAX)
            try:
                sent = super().send(data, flags)
            finally:
                self.settimeout(0)
        self.has_room = sent == len(data)
        return sent


class _Wakes:
    """How many requests wait to be sent; a byte is in the pipe while there is one."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = Lock()


class WakeWriter(socket.socket):
    """kazoo's loop is woken by a byte for each request; only the first of those that wait is written."""

    def __init__(self, end: socket.socket, wakes: _Wakes) -> None:
        super().__init__(end.family, end.type, end.proto, end.detach())
        self._wakes = wakes

    def send(self, data: Any, flags: int = 0) -> int:
        """One request more."""
        with self._wakes.lock:
            if not self._wakes.count:
                super().send(data, flags)
            self._wakes.count += 1
        return len(data)


class WakeReader(socket.socket):
    """The other end, read once for each request that was sent."""

    def __init__(self, end: socket.socket, wakes: _Wakes) -> None:
        super().__init__(end.family, end.type, end.proto, end.detach())
        self._wakes = wakes
        self._sent = 0

    def pending(self) -> int:
        """How many requests wait."""
        return self._wakes.count

    def is_look_due(self) -> bool:
        """Whether SENT_MAX requests were sent since the last time that it was."""
        is_due = self._sent >= SENT_MAX
        if is_due:
            self._sent = 0
        return is_due

    def recv(self, size: int, flags: int = 0) -> bytes:
        """One request less; BlockingIOError where none waits."""
        with self._wakes.lock:
            if self._wakes.count == 0:
                raise BlockingIOError
            self._wakes.count -= 1
            self._sent += 1
            return b"\0" if self._wakes.count else super().recv(size, flags)


def wake_pair() -> tuple[WakeReader, WakeWriter]:
    """To be read by kazoo's thread, and written by each thread that has a request."""
    reader, writer = socket.socketpair()
    wakes = _Wakes()
    return WakeReader(reader, wakes), WakeWriter(writer, wakes)


def known_ready(readers: Sequence[Any]) -> list[Any]:
    """Those that have something to read as far as is known without a system call; none if a look at all is due."""
    if any(isinstance(one, WakeReader) and one.is_look_due() for one in readers):
        return []
    return [one for one in readers if isinstance(one, ServerSocket | WakeReader) and one.pending()]


def known_room(writers: Sequence[Any]) -> bool:
    """Whether all have room, as far as is known."""
    return all(isinstance(one, ServerSocket) and one.has_room for one in writers)
