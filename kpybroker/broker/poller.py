"""One epoll for all the sockets of a listener, so that what can be answered at once costs no turn of the loop.

A task that waits for its socket costs a trip through trio's scheduler a request, twice what a one-record produce takes
to serve. Here the tasks sleep on, and the poller calls their `on_readable` for as long as there is something to read
and nothing else is kept waiting; a task wakes up when its `on_readable` says that it can't go on without it.

Where there is no epoll each task waits for its own socket, by `watch_alone`.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Callable

import outcome
import trio

TURN_S = 0.0005
"""How long a turn of the loop may be kept, give or take one request."""
EVENTS_A_POLL = 16
MOMENT_S = 30e-6
VAIN_MAX = 10

HAS_EPOLL = sys.platform.startswith("linux")

OnReadable = Callable[[], bool]
"""Takes what is there to read. False: its task is to wake up. Raises into its task."""


class Poller:
    """`run` it for as long as sockets are watched."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[OnReadable, trio.lowlevel.Task]] = {}
        self._vain = 0  # tries of `_wait_a_moment` in a row
        self._turns_without = 0

    async def run(self) -> None:
        try:
            while True:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                self._turn()
        finally:
            self._epoll.close()

    async def watch(self, sock: socket.socket, on_readable: OnReadable) -> None:
        """Until `on_readable` returns False or raises; meanwhile the caller sleeps."""
        descriptor = sock.fileno()
        self._epoll.register(descriptor, select.EPOLLIN)
        self._watched[descriptor] = (on_readable, trio.lowlevel.current_task())

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _turn(self) -> None:
        """Serve whoever has something to read, again and again until nobody has or the time is over."""
        watched = self._watched
        clock = time.perf_counter
        end = clock() + TURN_S
        while ready := self._epoll.poll(0, EVENTS_A_POLL) or self._wait_a_moment():
            for descriptor, _ in ready:
                watch = watched.get(descriptor)
                if watch is None:
                    continue  # cancelled meanwhile
                on_readable, task = watch
                try:
                    if on_readable():
                        continue
                    result: outcome.Outcome[None] = outcome.Value(None)
                except Exception as error:  # it is the connection's, whose task knows what to make of it
                    result = outcome.Error(error)
                if descriptor in watched:
                    self._forget(descriptor)
                    trio.lowlevel.reschedule(task, result)
            if clock() > end:
                return

    def _wait_a_moment(self) -> list[tuple[int, int]]:
        """A client that asks one thing after the other asks again sooner than the loop could go to sleep and wake up.

        Whether such clients are there is tried, and after a vain try not tried again for a while.
        """
        if self._turns_without > 0:
            self._turns_without -= 1
            return []
        if trio.lowlevel.current_statistics().tasks_runnable:
            return []  # an answer may have been waited for by one of them
        end = time.perf_counter() + MOMENT_S
        while time.perf_counter() < end:
            if ready := self._epoll.poll(0, EVENTS_A_POLL):
                self._vain = 0
                return ready
        self._vain = min(self._vain + 1, VAIN_MAX)
        self._turns_without = 1 << self._vain
        return []

    def _forget(self, descriptor: int) -> None:
        del self._watched[descriptor]
        if not self._epoll.closed:
            self._epoll.unregister(descriptor)


async def watch_alone(sock: socket.socket, on_readable: OnReadable) -> None:
    """`Poller.watch` without a poller."""
    await trio.lowlevel.wait_readable(sock)
    while on_readable():
        await trio.lowlevel.wait_readable(sock)
