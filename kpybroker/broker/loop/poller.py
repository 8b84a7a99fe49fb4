"""One epoll for all connections, so that a response that can be made at once costs no iteration of trio's loop.

A task that waits for its socket costs a trip through trio's scheduler for each request, twice what a one-record produce
takes to serve. Here the tasks sleep on. The poller calls their `on_ready` while there is something to read and nothing
else is kept waiting; a task wakes up when its `on_ready` returns False, because it has to go on there.

The poller is an instrument of trio, which learns that trio is about to wait. Then it waits in trio's place, for its
sockets and for whatever trio waits for (`run_loop`), serves, and returns once trio has something to do.

A socket that takes no more of a large response is watched for room instead of for data, and its `on_ready` sends on.

A socket whose request is suspended (see `steps`) is watched as any other. `poke` lets its `on_ready` be called once the
request can be responded to, in the time slice that ended its wait or soon after. A next request that arrives before
must not be read yet, so `on_ready` calls `mute`. From then on only the end of the connection is of interest
(`on_left`), as it is while a task waits for something else than its socket (`heed_end`).

More sockets may be ready than one time slice can serve. Then their clients have turns (`Turns`), and a client is an
address or a principal: a hundred connections of one have no more of the loop than one connection of another. A task
whose request takes more than one slice has its next one in the same way (`next_slice`).

Where there is no poller, each task waits for its own socket (`alone`). docs/internals/shortcuts.md: `poller`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Hashable

import outcome
import trio

from kpybroker.broker.loop.alone import Alone, OnLeft, OnReady
from kpybroker.broker.loop.run_loop import RunLoop
from kpybroker.broker.loop.turns import Turns
from kpybroker.system.sockets import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, HAS_EPOLL, new_epoll

SLICE_S = 0.0005
"""How long the poller may serve before trio's tasks run, give or take one request."""
EVENTS_A_POLL = 16
"""Above it all that are ready are asked for, if they are of several clients: who has a turn is not for epoll to say."""
READY_MAX = 16_384
WAKE_S = SLICE_S / 10
"""What a task that is woken is assumed to take when trio runs it: so few are woken in one time slice."""
SLICES_MAX = 8
"""How many tasks that wait for their next slice are woken at once, where those before took next to no time."""
MOMENT_S = 30e-6
"""How long the poller tries before it sleeps (`_wait_a_moment`)."""
VAIN_MAX = 10
"""After so many vain tries in a row the next one is put off no longer than before: 1 024 waits."""


class Watch:
    """A socket that a task watches. `is_due`: it is to be called soon, whether or not its socket is ready."""

    __slots__ = ("client", "descriptor", "is_due", "on_ready", "task")

    def __init__(self, descriptor: int, client: Hashable, on_ready: OnReady, task: trio.lowlevel.Task) -> None:
        self.descriptor = descriptor
        self.client = client
        self.on_ready = on_ready
        self.task: trio.lowlevel.Task | None = task  # None: its watch is over
        self.is_due = False


class Poller(trio.abc.Instrument):
    """One for each `trio.run` (`of_this_run`). `run` it while sockets are watched, once for each listener."""

    def __init__(self, loop: RunLoop) -> None:
        self._loop = loop
        self._epoll = new_epoll()
        self._epoll.register(loop.descriptor, EPOLLIN)
        self._watched: dict[int, Watch] = {}
        self._muted: dict[int, Watch] = {}
        self._ends: dict[int, OnLeft] = {}  # of those muted, and of those whose task waits for something else
        self._clients: dict[Hashable, int] = {}  # how many sockets of each are watched
        self._turns: Turns[Watch] = Turns()  # of those that are due
        self._poked_early: set[int] = set()  # before their task watches
        self._slices: Turns[trio.lowlevel.Task] = Turns()
        self._slices_given = 1
        self._tasks_begin = 0.0
        self._slice_end = 0.0
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
        while self._slices:
            trio.lowlevel.reschedule(self._slices.take())

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

    async def watch(
        self, sock: socket.socket, on_ready: OnReady, for_room: bool = False, client: Hashable = None
    ) -> None:
        """Sleep until `on_ready` returns False or raises. Its turns are those of `client`."""
        if self._epoll.closed:  # the broker stops
            await Alone().watch(sock, on_ready, for_room)
            return
        descriptor = sock.fileno()
        self.ignore_end(sock)
        self._epoll.register(descriptor, EPOLLOUT if for_room else EPOLLIN)
        watch = self._watched[descriptor] = Watch(descriptor, client, on_ready, trio.lowlevel.current_task())
        self._clients[client] = self._clients.get(client, 0) + 1
        if descriptor in self._poked_early:
            self._poked_early.remove(descriptor)
            self._make_due(watch)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(watch)
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
            self._unmute(descriptor, events)
        elif descriptor in self._watched:
            self._epoll.modify(descriptor, events)

    def mute(self, sock: socket.socket, on_left: OnLeft) -> None:
        """`on_ready` is not called before the next `poke`; `on_left` is, if the peer leaves. The socket is watched."""
        descriptor = sock.fileno()
        watch = self._watched.pop(descriptor, None)
        if watch is not None:
            self._muted[descriptor] = watch
            self._ends[descriptor] = on_left
            self._epoll.modify(descriptor, EPOLLRDHUP)

    def _unmute(self, descriptor: int, events: int) -> Watch:
        watch = self._watched[descriptor] = self._muted.pop(descriptor)
        if self._ends.pop(descriptor, None) is None:  # the peer has left
            self._epoll.register(descriptor, events)
        else:
            self._epoll.modify(descriptor, events)
        return watch

    def poke(self, sock: socket.socket) -> None:
        """Let `on_ready` be called soon, not by this call, whether or not there is something to read."""
        descriptor = sock.fileno()
        watch = self._watched.get(descriptor)
        if watch is None:
            if descriptor not in self._muted:
                self._poked_early.add(descriptor)
                return
            watch = self._unmute(descriptor, EPOLLIN)
        self._make_due(watch)

    def _make_due(self, watch: Watch) -> None:
        if not watch.is_due:
            watch.is_due = True
            self._turns.put(watch.client, watch)

    def heed_end(self, sock: socket.socket, on_left: OnLeft) -> None:
        """Call `on_left` once the peer leaves, until `ignore_end`. Does nothing while a task watches the socket."""
        descriptor = sock.fileno()
        is_known = descriptor in self._watched or descriptor in self._muted or descriptor in self._ends
        if descriptor >= 0 and not is_known and not self._epoll.closed:
            self._ends[descriptor] = on_left
            self._epoll.register(descriptor, EPOLLRDHUP)

    def ignore_end(self, sock: socket.socket) -> None:
        """The reverse of `heed_end`."""
        descriptor = sock.fileno()
        if descriptor not in self._muted and self._ends.pop(descriptor, None) is not None and not self._epoll.closed:
            self._epoll.unregister(descriptor)

    async def next_slice(self, client: Hashable) -> None:
        """Sleep until the calling task, which has work of this client to do, may have another time slice."""
        task = trio.lowlevel.current_task()
        self._slices.put(client, task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._slices.discard(client, task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def before_io_wait(self, timeout: float) -> None:
        """trio has run its tasks, and would now wait up to `timeout` seconds for something to do."""
        if self._failure is not None:
            return
        try:
            if self._slices:
                self._give_slices()
                if timeout > 0:
                    timeout = 0
                    self._loop.wake()
            if timeout > 0:
                self._serve_instead(timeout)
            else:
                self._serve_between()
            if self._slices:
                self._tasks_begin = time.perf_counter()
        except BaseException as error:  # raised by `run`: trio would log it and go on without the poller
            self._failure = error
            self._failed.set()
            self._loop.wake()

    def _give_slices(self) -> None:
        """Wake some of the tasks that wait for one: as few as possible where the last ones took long."""
        is_quick = time.perf_counter() - self._tasks_begin < SLICE_S
        self._slices_given = min(2 * self._slices_given, SLICES_MAX) if is_quick else 1
        for _ in range(self._slices_given):
            if self._slices:
                trio.lowlevel.reschedule(self._slices.take())

    def _serve_between(self) -> None:
        """trio's tasks can run: serve for one time slice before they do."""
        self._slice_end = time.perf_counter() + SLICE_S
        has_served = False
        while self._serve_all(self._epoll.poll(0, EVENTS_A_POLL)):
            has_served = True
            if time.perf_counter() > self._slice_end:
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
            if self._turns:
                ready = self._epoll.poll(0, EVENTS_A_POLL)
            else:
                ready = self._wait_a_moment() or self._epoll.poll(max(end - clock(), 0.0), EVENTS_A_POLL)
            self._slice_end = clock() + SLICE_S
            served = self._serve_all(ready)
            is_loop_ready = any(descriptor == loop.descriptor for descriptor, _ in ready)
            if is_loop_ready and not served:
                return  # trio's own wait ends at once
            has_served = has_served or served
            is_wanted = is_loop_ready or loop.has_runnable() or loop.next_deadline() < deadline
            if not served or is_wanted or clock() >= end:
                break
        if has_served or not loop.is_waiting_for_idleness():
            loop.wake()

    def _serve_all(self, ready: list[tuple[int, int]]) -> bool:
        """Serve the ready sockets, and those that are due, until the slice ends. Whether there were any."""
        turns, has_several = self._turns, len(self._clients) > 1
        if not turns and (not ready or (len(ready) == 1 and ready[0][0] == self._loop.descriptor)):
            return False
        for gauge in self._gauges:
            gauge.after_io_wait(0)
        if has_several and len(ready) == EVENTS_A_POLL:
            self._line_up(self._epoll.poll(0, READY_MAX))
        elif turns:
            self._line_up(ready)
        else:
            for served, (descriptor, events) in enumerate(ready, 1):
                if (watch := self._watched.get(descriptor)) is not None:
                    self._serve(watch)
                else:
                    self._notice(descriptor, events)
                if has_several and served < len(ready) and time.perf_counter() > self._slice_end:
                    self._line_up(ready[served:])
                    break
        while turns:
            watch = turns.take()
            watch.is_due = False
            if watch.task is not None:
                self._serve(watch)
            if time.perf_counter() > self._slice_end:
                break
        for gauge in self._gauges:
            gauge.before_io_wait(0)
        return True

    def _line_up(self, ready: list[tuple[int, int]]) -> None:
        """Each has a turn when it is its client's."""
        for descriptor, events in ready:
            watch = self._watched.get(descriptor)
            if watch is None:
                self._notice(descriptor, events)
            elif not watch.is_due:
                watch.is_due = True
                self._turns.put(watch.client, watch)

    def _serve(self, watch: Watch) -> None:
        try:
            if watch.on_ready():
                return
            result: outcome.Outcome[None] = outcome.Value(None)
        except Exception as error:  # the connection's task handles it
            result = outcome.Error(error)
        if (task := watch.task) is not None:
            self._forget(watch)
            trio.lowlevel.reschedule(task, result)
            if len(self._clients) > 1:
                self._slice_end -= WAKE_S

    def _notice(self, descriptor: int, events: int) -> None:
        """No task reads from this socket: its peer has left. Or its task was cancelled, or the socket is trio's."""
        on_left = self._ends.pop(descriptor, None)
        if on_left is not None:
            self._epoll.unregister(descriptor)
            on_left(bool(events & (EPOLLERR | EPOLLHUP)))

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

    def _forget(self, watch: Watch) -> None:
        watch.task = None
        descriptor, client = watch.descriptor, watch.client
        if self._clients[client] == 1:
            del self._clients[client]
        else:
            self._clients[client] -= 1
        is_reported = True
        if self._muted.pop(descriptor, None) is None:
            del self._watched[descriptor]
        else:
            is_reported = self._ends.pop(descriptor, None) is not None
        if is_reported and not self._epoll.closed:
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


def running_poller() -> Poller | None:
    """The poller of this `trio.run`, if it serves."""
    poller = _POLLER.get()
    return poller if poller is not None and poller.is_running else None
