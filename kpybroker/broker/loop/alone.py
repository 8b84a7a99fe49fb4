"""The plain path without a poller: each task waits for its own socket.

Here trio decides whose turn it is, among all tasks alike. Without epoll the end of a connection may be hidden by bytes
that wait to be read; then it is looked for now and then (`LOOK_S`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Hashable

import trio

from kpybroker.system.sockets import peer_has_left

LOOK_S = 1.0

OnReady = Callable[[], bool]
"""Takes what is there to read, or sends more. False: its task must wake up. What it raises, its task raises."""
OnLeft = Callable[[bool], None]
"""The peer has closed the connection, or its side of it, from which it may still read. True: there was a reset."""


class Alone:
    """One for each socket; its methods are those of the `Poller`."""

    def __init__(self) -> None:
        self._is_watched = False
        self._on_left: OnLeft | None = None  # while it is muted
        self._is_poked = False
        self._wants_room = False
        self._wait = trio.CancelScope()
        self._look_out = trio.CancelScope()

    async def watch(
        self, sock: socket.socket, on_ready: OnReady, for_room: bool = False, client: Hashable = None
    ) -> None:
        """Wait for the socket in the calling task, until `on_ready` returns False or raises."""
        self._look_out.cancel()
        self._on_left = None
        self._wants_room = for_room
        self._is_watched = True
        try:
            await self._watch(sock, on_ready)
        finally:
            self._is_watched = False

    async def _watch(self, sock: socket.socket, on_ready: OnReady) -> None:
        while True:
            with trio.CancelScope() as self._wait:
                if self._is_poked:
                    await trio.lowlevel.checkpoint()
                elif self._on_left is not None:
                    await _until_left(sock)
                    self._on_left(False)
                    await trio.sleep_forever()
                elif self._wants_room:
                    await trio.lowlevel.wait_writable(sock)
                else:
                    await trio.lowlevel.wait_readable(sock)
            self._is_poked = False
            if not on_ready():
                return

    def want_room(self, _: socket.socket) -> None:
        """Wait until more can be sent."""
        self._wants_room = True

    def want_data(self, _: socket.socket) -> None:
        """Wait until there is something to read."""
        self._wants_room = False

    def mute(self, _: socket.socket, on_left: OnLeft) -> None:
        """Wait for the next `poke` only; call `on_left` if the peer leaves before."""
        self._on_left = on_left

    def poke(self, _: socket.socket) -> None:
        """Call `on_ready` in the task that watches, or that will."""
        self._on_left = None
        self._is_poked = True
        self._wait.cancel()

    def heed_end(self, sock: socket.socket, on_left: OnLeft) -> None:
        """Call `on_left` once the peer leaves, until `ignore_end`. Does nothing while a task watches the socket."""
        if self._is_watched:
            return
        self._look_out = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._look_for_end, sock, on_left, self._look_out)

    def ignore_end(self, _: socket.socket) -> None:
        """The reverse of `heed_end`."""
        self._look_out.cancel()

    @staticmethod
    async def _look_for_end(sock: socket.socket, on_left: OnLeft, scope: trio.CancelScope) -> None:
        with scope:
            try:
                await _until_left(sock)
            except (OSError, trio.ClosedResourceError, trio.BusyResourceError):
                return  # its own task has closed it, or reads from it
            on_left(False)


async def _until_left(sock: socket.socket) -> None:
    while True:
        await trio.lowlevel.checkpoint_if_cancelled()  # its own task may be waiting for it already
        await trio.lowlevel.wait_readable(sock)
        if peer_has_left(sock):
            return
        await trio.sleep(LOOK_S)
