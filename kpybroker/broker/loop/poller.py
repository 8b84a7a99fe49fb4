"""One epoll for all connections, so that what can be answered at once costs no iteration of trio's loop.

A task that waits for its socket costs a trip through trio's scheduler for each request, twice what a one-record produce
takes to serve. Here the tasks sleep on. The poller calls their `on_ready` while there is something to read and nothing
else is kept waiting; a task wakes up when its `on_ready` returns False, because it has to go on there.

The poller is an instrument of trio, which learns that trio is about to wait. Then it waits in trio's place, for its
sockets and for whatever trio waits for (`run_loop`), serves, and returns once trio has something to do.

A socket that takes no more of a large response is watched for room instead of for data, and its `on_ready` sends on.

A socket whose request is suspended (see `steps`) is watched as any other. `poke` lets its `on_ready` be called once the
request can be answered, in the time slice that ended its wait or soon after. A next request that arrives before must
not be read yet, so `on_ready` calls `mute`.

Where there is no poller, each task waits for its own socket (`Alone`). docs/internals/shortcuts.md: `poller`.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable

import outcome
import trio

from kpybroker.broker.loop.run_loop import RunLoop
from kpybroker.system import EPOLLIN, EPOLLOUT, HAS_EPOLL, new_epoll

SLICE_S = 0.0005
"""How long the poller may serve before trio's tasks run, give or take one request."""
EVENTS_A_POLL = 16
MOMENT_S = 30e-6
"""How long the poller tries before it sleeps (`_wait_a_moment`)."""
VAIN_MAX = 10
"""After so many vain tries in a row the next one is put off no longer than before: 1 024 waits."""

OnReady = Callable[[], bool]
"""Takes what is there to read, or sends more. False: its task must wake up. What it raises, its task raises."""


class Poller(trio.abc.Instrument):
    """One for each `trio.run` (`of_this_run`). `run` it while sockets are watched, once for each listener."""

    def __init__(self, loop: RunLoop) -> None:
        self._loop = loop
        self._epoll = new_epoll()
        self._epoll.register(loop.descriptor, EPOLLIN)
        self._watched: dict[int, tuple[OnReady, trio.lowlevel.Task]] = {}
        self._muted: set[int] = set()  # of those watched
        self._poked: deque[int] = deque()
        self._gauges: list[trio.abc.Instrument] = []
        self._failure: BaseException | None = None
        self._failed = trio.Event()
        self._runs = 0
        self._vain = 0  # tries of `_wait_a_moment` in a row
        self._waits_without_try = 0

    @staticmethod
    def of_this_run() -> Poller | None:
        """The poller of this `trio.run`, made by the first call; None where trio's loop can't be watched."""
        poller = _POLLER.get()
        if poller is None and HAS_EPOLL and (loop := RunLoop.of_this_run()) is not None:
            poller = Poller(loop)
            _POLLER.set(poller)
        return poller

    @property
    def is_running(self) -> bool:
        """Whether `run` is in progress."""
        return self._runs > 0

    async def run(self) -> None:
        """Serve the watched sockets until cancelled. Raises what the poller itself failed with."""
        self._runs += 1
        if self._runs == 1:
            trio.lowlevel.add_instrument(self)
        try:
            await self._failed.wait()
            assert self._failure is not None
            raise self._failure
        finally:
            self._runs -= 1
            if not self._runs:
                self._close()

    def _close(self) -> None:
        trio.lowlevel.remove_instrument(self)
        self._epoll.close()
        _POLLER.set(None)

    def add_gauge(self, gauge: trio.abc.Instrument) -> None:
        """Let an instrument measure what is served here, too."""
        self._gauges.append(gauge)
        if self._runs:  # the poller must be the last instrument that is called before a wait, because it waits
            trio.lowlevel.remove_instrument(self)
            trio.lowlevel.add_instrument(self)

    def remove_gauge(self, gauge: trio.abc.Instrument) -> None:
        """The reverse of `add_gauge`."""
        if gauge in self._gauges:
            self._gauges.remove(gauge)

    async def watch(self, sock: socket.socket, on_ready: OnReady, for_room: bool = False) -> None:
        """Sleep until `on_ready` returns False or raises."""
        if self._epoll.closed:  # the broker stops
            await Alone().watch(sock, on_ready, for_room)
            return
        descriptor = sock.fileno()
        self._epoll.register(descriptor, EPOLLOUT if for_room else EPOLLIN)
        self._watched[descriptor] = (on_ready, trio.lowlevel.current_task())

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def want_room(self, sock: socket.socket) -> None:
        """From now on `on_ready` is called when more can be sent, if the socket is watched."""
        self._look_for(sock.fileno(), EPOLLOUT)

    def want_data(self, sock: socket.socket) -> None:
        """From now on `on_ready` is called when there is something to read."""
        self._look_for(sock.fileno(), EPOLLIN)

    def _look_for(self, descriptor: int, events: int) -> None:
        if self._epoll.closed:  # the broker stops
            return
        if descriptor in self._muted:
            self._muted.remove(descriptor)
            self._epoll.register(descriptor, events)
        elif descriptor in self._watched:
            self._epoll.modify(descriptor, events)

    def mute(self, sock: socket.socket) -> None:
        """`on_ready` is not called before the next `poke`. The socket must be watched."""
        descriptor = sock.fileno()
        if descriptor not in self._muted:
            self._muted.add(descriptor)
            self._epoll.unregister(descriptor)

    def poke(self, sock: socket.socket) -> None:
        """Let `on_ready` be called soon, not by this call, whether or not there is something to read."""
        descriptor = sock.fileno()
        self._poked.append(descriptor)
        if descriptor in self._muted:
            self._muted.remove(descriptor)
            self._epoll.register(descriptor, EPOLLIN)

    def before_io_wait(self, timeout: float) -> None:
        """trio has run its tasks, and would now wait up to `timeout` seconds for something to do."""
        if self._failure is not None:
            return
        try:
            if timeout > 0:
                self._serve_instead(timeout)
            else:
                self._serve_between()
        except BaseException as error:  # raised by `run`: trio would log it and go on without the poller
            self._failure = error
            self._failed.set()
            self._loop.wake()

    def _serve_between(self) -> None:
        """trio's tasks can run: serve for one time slice before they do."""
        end = time.perf_counter() + SLICE_S
        has_served = False
        while self._serve_all([] if self._poked else self._epoll.poll(0, EVENTS_A_POLL), end):
            has_served = True
            if time.perf_counter() > end:
                break
        if has_served and not self._loop.has_runnable():
            self._loop.wake()  # for a clock that jumps when nothing happens: something did

    def _serve_instead(self, timeout: float) -> None:
        """Wait and serve in trio's place, until trio has something to do or `timeout` has passed."""
        loop, clock = self._loop, time.perf_counter
        end = clock() + timeout
        deadline = loop.next_deadline()
        has_served = False
        while True:
            ready: list[tuple[int, int]] = []
            if not self._poked:
                ready = self._wait_a_moment() or self._epoll.poll(max(end - clock(), 0.0), EVENTS_A_POLL)
            served = self._serve_all(ready, clock() + SLICE_S)
            is_loop_ready = any(descriptor == loop.descriptor for descriptor, _ in ready)
            if is_loop_ready and not served:
                return  # trio's own wait ends at once
            has_served = has_served or served
            is_wanted = is_loop_ready or loop.has_runnable() or loop.next_deadline() < deadline
            if not served or is_wanted or clock() >= end:
                break
        if has_served or not loop.is_waiting_for_idleness():
            loop.wake()

    def _serve_all(self, ready: list[tuple[int, int]], end: float) -> bool:
        """Serve the ready sockets, then those that were poked, until `end`. Whether there were any."""
        if not self._poked and (not ready or (len(ready) == 1 and ready[0][0] == self._loop.descriptor)):
            return False
        for gauge in self._gauges:
            gauge.after_io_wait(0)
        for descriptor, _ in ready:
            self._serve(descriptor)
        poked = self._poked
        while poked:
            self._serve(poked.popleft())
            if time.perf_counter() > end:
                break
        for gauge in self._gauges:
            gauge.before_io_wait(0)
        return True

    def _serve(self, descriptor: int) -> None:
        watch = self._watched.get(descriptor)
        if watch is None:
            return  # its task was cancelled, or it is trio's
        on_ready, task = watch
        try:
            if on_ready():
                return
            result: outcome.Outcome[None] = outcome.Value(None)
        except Exception as error:  # the connection's task handles it
            result = outcome.Error(error)
        if descriptor in self._watched:
            self._forget(descriptor)
            trio.lowlevel.reschedule(task, result)

    def _wait_a_moment(self) -> list[tuple[int, int]]:
        """Try for a moment before sleeping: a client that sends one request after the other is sooner than a wake-up.

        After each vain try the next one is put off for twice as many waits.
        """
        if self._waits_without_try > 0:
            self._waits_without_try -= 1
            return []
        end = time.perf_counter() + MOMENT_S
        while time.perf_counter() < end:
            if ready := self._epoll.poll(0, EVENTS_A_POLL):
                self._vain = 0
                return ready
        self._vain = min(self._vain + 1, VAIN_MAX)
        self._waits_without_try = 1 << self._vain
        return []

    def _forget(self, descriptor: int) -> None:
        del self._watched[descriptor]
        if descriptor in self._muted:
            self._muted.remove(descriptor)
        elif not self._epoll.closed:
            self._epoll.unregister(descriptor)


_POLLER: trio.lowlevel.RunVar[Poller | None] = trio.lowlevel.RunVar("poller", None)


def measure(gauge: trio.abc.Instrument) -> None:
    """Add an instrument that measures time slices of the loop, those of the poller included."""
    trio.lowlevel.add_instrument(gauge)
    if (poller := Poller.of_this_run()) is not None:
        poller.add_gauge(gauge)


def measure_no_more(gauge: trio.abc.Instrument) -> None:
    """The reverse of `measure`."""
    trio.lowlevel.remove_instrument(gauge)
    if (poller := _POLLER.get()) is not None:
        poller.remove_gauge(gauge)


class Alone:
    """The plain path without a poller: each task waits for its own socket."""

    def __init__(self) -> None:
        self._is_muted = False
        self._is_poked = False
        self._wants_room = False
        self._wait = trio.CancelScope()

    async def watch(self, sock: socket.socket, on_ready: OnReady, for_room: bool = False) -> None:
        """Wait for the socket in the calling task, until `on_ready` returns False or raises."""
        self._is_muted = False
        self._wants_room = for_room
        while True:
            with trio.CancelScope() as self._wait:
                if self._is_poked:
                    await trio.lowlevel.checkpoint()
                elif self._is_muted:
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

    def mute(self, _: socket.socket) -> None:
        """Wait for the next `poke` only."""
        self._is_muted = True

    def poke(self, _: socket.socket) -> None:
        """Call `on_ready` in the task that watches, or that will."""
        self._is_muted = False
        self._is_poked = True
        self._wait.cancel()
