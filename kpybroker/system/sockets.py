"""Sockets: waiting for them, sending from files, taking and leaving ports."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from kpybroker.system import IS_PORTABLE, of_the_system

Buffer = bytes | bytearray | memoryview

HAS_EPOLL: Final = sys.platform == "linux" and not IS_PORTABLE
EPOLLIN: Final[int] = getattr(select, "EPOLLIN", 1)
EPOLLOUT: Final[int] = getattr(select, "EPOLLOUT", 4)
EPOLLERR: Final[int] = getattr(select, "EPOLLERR", 8)
EPOLLHUP: Final[int] = getattr(select, "EPOLLHUP", 16)
EPOLLRDHUP: Final[int] = getattr(select, "EPOLLRDHUP", 0x2000)
POLLIN: Final[int] = getattr(select, "POLLIN", 1)
POLLOUT: Final[int] = getattr(select, "POLLOUT", 4)
_POLLRDHUP: Final[int] = of_the_system(select, "POLLRDHUP") or 0


class Epoll(Protocol):
    """The part of `select.epoll` that the poller uses."""

    closed: bool

    def register(self, fd: int, eventmask: int) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, eventmask: int) -> None:
        """Watch it for other events."""

    def unregister(self, fd: int) -> None:
        """Watch it no more."""

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        """Descriptors with their events."""
        ...

    def close(self) -> None:
        """Free its descriptor."""


def new_epoll() -> Epoll:
    """Only where `HAS_EPOLL`."""
    made: Epoll = getattr(select, "epoll")()  # noqa: B009 (for mypy, which knows that other systems have none)
    return made


_new_poll: Final[Callable[[], Any]] = of_the_system(select, "poll")
HAS_POLL: Final = _new_poll is not None
"""Not on Windows."""


def poll(sockets: Sequence[socket.socket], timeout_s: float, *, for_room: bool = False) -> list[socket.socket]:
    """Those that have something to read (or room to send into), waited for. Only where `HAS_POLL`."""
    asked = _new_poll()
    events = POLLOUT if for_room else POLLIN
    for one in sockets:
        asked.register(one, events)
    found = {descriptor for descriptor, _ in asked.poll(timeout_s * 1000)}
    return [one for one in sockets if one.fileno() in found]


def peer_has_left(sock: socket.socket) -> bool:
    """Whether the peer has closed its side. Only Linux says so while there are bytes to read, which may hide it."""
    if sys.platform == "linux" and _POLLRDHUP:
        asked = select.poll()
        asked.register(sock, _POLLRDHUP)
        return bool(asked.poll(0))
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


HAS_SENDFILE: Final = sys.platform == "linux" and hasattr(os, "sendfile") and not IS_PORTABLE
"""Only Linux's: elsewhere it has other arguments, or needs a blocking socket."""
sendfile: Final[Callable[[int, int, int, int], int]] = of_the_system(os, "sendfile")
preadv: Final[Callable[..., int]] = of_the_system(os, "preadv")
"""Only where `HAS_SENDFILE` or `RWF_NOWAIT`."""
RWF_NOWAIT: Final[int] = of_the_system(os, "RWF_NOWAIT") or 0
"""0: whether a page is cached cannot be asked."""
MSG_MORE: Final[int] = of_the_system(socket, "MSG_MORE") or 0
sendmsg: Final[Callable[[socket.socket, Sequence[Buffer], tuple[()], int], int]] = of_the_system(
    socket.socket, "sendmsg"
)
HAS_SENDMSG: Final = sendmsg is not None
"""Only where `HAS_SENDMSG`."""


def claim_port(sock: socket.socket) -> None:
    """Before `bind`: take a port that a process left a moment ago, but never one that another process listens on."""
    if sys.platform == "win32":
        # SO_REUSEADDR would share the port with a process that listens on it.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def listening(host: str, port: int, backlog: int = 128) -> socket.socket:
    """A socket that listens on an address, or on the first one of a name; port 0 takes a free one. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        claim_port(made)
        made.bind(address)
        made.listen(backlog)
    except BaseException:
        made.close()
        raise
    return made


PASSES_SOCKETS: Final = sys.platform != "win32" and not IS_PORTABLE
"""Whether a child process can be given a socket by its descriptor."""


def reset_on_close(sock: socket.socket) -> None:
    """Let `close` drop what is not sent, and reset the connection (SO_LINGER of 0 seconds)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0))
