"""One broker's client of the tree, with a network between them: delays, lost connections, sessions that time out.

The tree itself, on a host of its own, is an `EmbeddedStore` in memory. What is sent to it arrives in order after a
delay, and so do its results and events. While the network is cut both wait. The client gives its connection up after
two thirds of the session timeout: operations in flight return `ConnectionLoss`, whether they were performed or not. The
tree ends a session that it has not heard of for the whole timeout, also that of a process that was killed.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import trio

from kpybroker.coordination.embedded import EmbeddedTree
from kpybroker.coordination.tree import CoordinationUnavailable, Listener, Tree
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent, path_of
from tests.simulation.seams.agenda import LOOK_S, Agenda, until
from tests.simulation.seams.network import DELAY_S, JITTER_S, Network, Process
from tests.simulation.seams.trace import Trace

HOST = "tree"
TRIES_A_TIMEOUT = 6


def at_once(awaitable: Awaitable[Any]) -> Any:
    """The result of a coroutine that waits for nothing: those of a tree in memory are such."""
    try:
        awaitable.__await__().send(None)
    except StopIteration as finished:
        return finished.value
    raise AssertionError("the tree in memory has waited")


class _Call:
    """What the client waits for."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_lost = False


class _Way:
    """One direction: functions that are called in order, each after its delay, and not while the network is cut."""

    def __init__(self, tree: SimulatedTree, source: str, target: str) -> None:
        self._tree, self._source, self._target = tree, source, target
        self._waiting: deque[Callable[[], None]] = deque()
        self._arrives_at = 0.0

    def send(self, call: Callable[[], None]) -> None:
        tree = self._tree
        self._arrives_at = max(self._arrives_at, trio.current_time() + DELAY_S + tree.chance.random() * JITTER_S)
        self._waiting.append(call)
        tree.agenda.at(self._arrives_at, self._arrive)

    def _arrive(self) -> None:
        if self._tree.network.is_cut(self._source, self._target):
            self._tree.agenda.after(LOOK_S, self._arrive)
        elif self._waiting:
            self._waiting.popleft()()

    def lose(self) -> None:
        self._waiting.clear()


class SimulatedTree(Tree):
    """The client of one process."""

    def __init__(self, inner: EmbeddedTree, process: Process, network: Network, agenda: Agenda, trace: Trace) -> None:
        self.inner, self.network, self.agenda, self.chance = inner, network, agenda, random.Random(0)
        self._process, self._trace = process, trace
        self._to_tree, self._to_client = _Way(self, process.host, HOST), _Way(self, HOST, process.host)
        self._listener: Listener | None = None
        self._calls: list[_Call] = []
        self._kept: deque[TreeEvent] = deque()
        self._is_connected = self._is_expired = self._is_closed = False
        self._heard_at = 0.0
        self._changed = trio.lowlevel.ParkingLot()
        inner.listen(self._on_event)

    # --- the contract

    @property
    def session_id(self) -> int:
        """As `Tree.session_id`."""
        return self.inner.session_id

    @property
    def generation(self) -> int:
        """As `Tree.generation`."""
        return self.inner.generation

    @property
    def connected(self) -> bool:
        """As `Tree.connected`."""
        return self._is_connected and not self._is_expired

    @property
    def negotiated_timeout_ms(self) -> int:
        """As `Tree.negotiated_timeout_ms`."""
        return self.inner.negotiated_timeout_ms

    def listen(self, listener: Listener) -> None:
        """As `Tree.listen`."""
        self._listener = listener

    async def start(self, timeout: float) -> None:
        """As `Tree.start`."""
        with trio.move_on_after(timeout):
            await until(lambda: not self._is_out_of_reach)
            await self._call(lambda: self.inner.start(timeout))
            self._is_connected = True
            self._heard_at = trio.current_time()
            self.agenda.after(self._tick_s, self._tick)
            return
        raise CoordinationUnavailable("the tree", "it is out of reach")

    async def reopen(self) -> None:
        """As `Tree.reopen`."""
        await until(lambda: not self._is_out_of_reach)
        if self._is_closed:
            raise t.TreeClosed
        self._is_connected = True
        await self._call(self.inner.reopen)
        self._is_expired = False
        self._changed.unpark_all()

    async def wait_until_connected(self) -> None:
        """As `Tree.wait_until_connected`."""
        while not self.connected:
            if self._is_closed:
                raise t.TreeClosed
            if self._is_expired:
                raise t.SessionExpired
            await self._changed.park()

    async def close(self) -> None:
        """As `Tree.close`. A process that was killed has nothing to say any more."""
        if self._is_closed:
            return
        self._is_closed = True
        self._changed.unpark_all()
        if self._process.is_alive and not self._is_out_of_reach:
            at_once(self.inner.close())

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """As `Tree.submit_many`."""
        refusal = t.TreeClosed if self._is_closed else t.SessionExpired if self._is_expired else None
        if refusal is not None:
            await trio.lowlevel.checkpoint()
            return [refusal(path_of(op)) for op in ops]
        if not self._is_connected:
            await trio.lowlevel.checkpoint()
            return [t.ConnectionLoss(path_of(op)) for op in ops]
        results: list[t.Result | t.TreeError] | None = await self._call(lambda: self._perform(ops))
        return [t.ConnectionLoss(path_of(op)) for op in ops] if results is None else results

    async def _perform(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        results = await self.inner.submit_many(ops)
        for op, result in zip(ops, results, strict=True):
            if not isinstance(op, t.Get | t.Exists | t.Children | t.GetAcl):
                failed = type(result).__name__ if isinstance(result, t.TreeError) else "done"
                self._trace.add("tree", f"{self._process.host} {type(op).__name__} {path_of(op)} {failed}")
        return results

    # --- the network between

    @property
    def _tick_s(self) -> float:
        return self.negotiated_timeout_ms / 1000 / TRIES_A_TIMEOUT

    @property
    def _is_out_of_reach(self) -> bool:
        host = self._process.host
        return self.network.is_cut(host, HOST) or self.network.is_cut(HOST, host)

    async def _call(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Its result, None if the connection was lost."""
        call = _Call()
        self._calls.append(call)
        try:
            if self._process.is_alive:
                self._to_tree.send(partial(self._performed, call, function))
            await call.done.wait()
        finally:
            self._calls.remove(call)
        if call.error is not None:
            raise call.error
        return call.result

    def _performed(self, call: _Call, function: Callable[[], Awaitable[Any]]) -> None:
        self._heard_at = trio.current_time()
        try:
            call.result = at_once(function())
        except t.TreeError as error:
            call.error = error
        self._to_client.send(partial(self._returned, call))

    def _returned(self, call: _Call) -> None:
        call.done.set()

    def _on_event(self, event: TreeEvent) -> None:
        """The tree has announced something; the client learns it later."""
        self._kept.append(event)
        self._to_client.send(self._release)

    def _release(self) -> None:
        if self._process.is_paused:
            self._process.call(self._release)
            return
        while self._kept and self._is_connected and self._process.is_alive:
            event = self._kept.popleft()
            if isinstance(event, SessionEvent) and event.type is SessionState.EXPIRED:
                self._is_expired = True
                self._changed.unpark_all()
            elif isinstance(event, SessionEvent) and event.type is SessionState.CONNECTED:
                self._is_expired = False  # a listener may use the new session at once
            self._trace.add("tree", f"{self._process.host} gets {event}")
            if self._listener is not None and not self._is_closed:
                self._listener(event)

    def _tick(self) -> None:
        """Both sides look for a sign of life, or give one."""
        silent_s = trio.current_time() - self._heard_at
        if self._process.is_alive and not self._process.is_paused and not self._is_closed:
            if not self._is_out_of_reach:
                self._heard_at = trio.current_time()
                if not self._is_connected:
                    self._reconnect()
            elif self._is_connected and silent_s >= self.negotiated_timeout_ms / 1000 * 2 / 3:
                self._disconnect()
        if silent_s >= self.negotiated_timeout_ms / 1000 and self.inner.connected and self._is_silent:
            self._trace.add("tree", f"the session of {self._process.host} has timed out")
            at_once(self.inner.expire())
        if self._process.is_alive or self.inner.connected:
            self.agenda.after(self._tick_s, self._tick)

    @property
    def _is_silent(self) -> bool:
        process = self._process
        return self._is_out_of_reach or self._is_closed or process.is_paused or not process.is_alive

    def _disconnect(self) -> None:
        self._is_connected = False
        self._to_tree.lose()
        self._to_client.lose()
        for call in self._calls:
            call.result = None
            call.done.set()
        self._tell(SessionState.DISCONNECTED)

    def _reconnect(self) -> None:
        self._is_connected = True
        if self.inner.connected:
            self._tell(SessionState.CONNECTED)
        self._changed.unpark_all()
        self._release()

    def _tell(self, state: SessionState) -> None:
        self._trace.add("tree", f"{self._process.host} is {state.value}")
        if self._listener is not None:
            self._listener(SessionEvent(state, self.generation))

    def expire(self) -> None:
        """The tree ends the session now."""
        if self.inner.connected:
            at_once(self.inner.expire())
