"""One epoll for all the sockets of a listener, so that what can be answered at once costs no turn of the loop.

A task that waits for its socket costs a trip through trio's scheduler a request, twice what a one-record produce takes
to serve. Here the tasks sleep on, and the poller calls their `on_readable` for as long as there is something to read
and nothing else is kept waiting; a task wakes up when its `on_readable` says that it can't go on without it.

A socket whose request is parked (see `steps`) is watched as any other. `poke` has its `on_readable` called once the
request can be answered, in the very turn that served whatever ended its wait, or soon. What comes meanwhile is not to
be read yet, so that it says `mute`.

Where there is no epoll each task waits for its own socket, as `Alone`.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import deque
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
        self._muted: set[int] = set()  # of those watched
        self._poked: deque[int] = deque()
        self._between_turns = trio.lowlevel.ParkingLot()
        self._in_turn = False
        self._vain = 0  # tries of `_wait_a_moment` in a row
        self._turns_without = 0

    async def run(self) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_between_turns)
                while True:
                    await trio.lowlevel.wait_readable(self._epoll.fileno())
                    self._turn()
        finally:
            self._epoll.close()

    async def _run_between_turns(self) -> None:
        """For those that are poked when nobody is being served, or whom a turn had no time for."""
        while True:
            if self._poked:
                await trio.lowlevel.checkpoint()
            else:
                await self._between_turns.park()
            self._turn()

    async def watch(self, sock: socket.socket, on_readable: OnReadable) -> None:
        """Until `on_readable` returns False or raises; meanwhile the caller sleeps."""
        descriptor = sock.fileno()
        self._epoll.register(descriptor, select.EPOLLIN)
        self._watched[descriptor] = (on_readable, trio.lowlevel.current_task())

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def mute(self, sock: socket.socket) -> None:
        """`on_readable` is not called before the next `poke`, which is for a socket that is being watched."""
        descriptor = sock.fileno()
        if descriptor not in self._muted:
            self._muted.add(descriptor)
            self._epoll.unregister(descriptor)

    def poke(self, sock: socket.socket) -> None:
        """Have `on_readable` called, whether or not there is something to read: before long, not by this call."""
        descriptor = sock.fileno()
        self._poked.append(descriptor)
        if descriptor in self._muted:
            self._muted.remove(descriptor)
            self._epoll.register(descriptor, select.EPOLLIN)
        if not self._in_turn:
            self._between_turns.unpark()

    def _turn(self) -> None:
        """Serve whoever was poked or has something to read, until nobody has or the time is over."""
        clock = time.perf_counter
        end = clock() + TURN_S
        self._in_turn = True
        self._serve_poked(end)
        while ready := self._epoll.poll(0, EVENTS_A_POLL) or self._wait_a_moment():
            for descriptor, _ in ready:
                self._serve(descriptor)
            self._serve_poked(end)
            if clock() > end:
                break
        self._in_turn = False
        if self._poked:
            self._between_turns.unpark()

    def _serve_poked(self, end: float) -> None:
        poked = self._poked
        while poked:
            self._serve(poked.popleft())
            if time.perf_counter() > end:
                return

    def _serve(self, descriptor: int) -> None:
        watch = self._watched.get(descriptor)
        if watch is None:
            return  # cancelled meanwhile
        on_readable, task = watch
        try:
            if on_readable():
                return
            result: outcome.Outcome[None] = outcome.Value(None)
        except Exception as error:  # it is the connection's, whose task knows what to make of it
            result = outcome.Error(error)
        if descriptor in self._watched:
            self._forget(descriptor)
            trio.lowlevel.reschedule(task, result)

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
        if descriptor in self._muted:
            self._muted.remove(descriptor)
        elif not self._epoll.closed:
            self._epoll.unregister(descriptor)


class Alone:
    """One socket's `watch`, `mute` and `poke` without a poller."""

    def __init__(self) -> None:
        self._is_muted = False
        self._wait = trio.CancelScope()

    async def watch(self, sock: socket.socket, on_readable: OnReadable) -> None:
        self._is_muted = False
        while True:
            with trio.CancelScope() as self._wait:
                if self._is_muted:
                    await trio.sleep_forever()
                await trio.lowlevel.wait_readable(sock)
            if not on_readable():
                return

    def mute(self, _: socket.socket) -> None:
        self._is_muted = True

    def poke(self, _: socket.socket) -> None:
        self._is_muted = False
        self._wait.cancel()
