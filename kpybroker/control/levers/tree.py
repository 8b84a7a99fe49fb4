"""A session in the tree that can be held (its broker is paused) or cut off (the network between them is down).

*Paused*: operations wait, and results and events that arrive are kept, in order, until `resume`.

*Cut off*: operations return `ConnectionLoss`, those in flight as well, though they may have been applied; events wait.
The listener gets DISCONNECTED at once and CONNECTED when the connection is restored.

Either way the tree gets no sign of life from the client. After the session timeout the session ends for everyone else:
its ephemeral nodes go. The client learns that only when it is resumed and has its connection back, as with ZooKeeper.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from kpybroker.coordination.tree import CoordinationUnavailable, Listener, Tree
from kpybroker.core import tree as t
from kpybroker.core.tree import SessionEvent, SessionState, TreeEvent, path_of

if TYPE_CHECKING:
    from kpybroker.broker.loop.clock import Clock

logger = logging.getLogger("kafka.server.KafkaServer")

Spawn = Callable[[Callable[[], Awaitable[None]]], object]


class ExpirableTree(Tree, Protocol):
    """A tree whose session a test can end."""

    async def expire(self) -> None:
        """End the session as if the session timeout had passed without a request."""


class ForwardingTree(Tree):
    """`inner`'s session as its own, and a listener that gets what the tree around it lets through."""

    def __init__(self, inner: ExpirableTree) -> None:
        self._inner = inner
        self._listener: Listener | None = None

    @property
    def session_id(self) -> int:
        """The session id of `inner`."""
        return self._inner.session_id

    @property
    def generation(self) -> int:
        """The generation of `inner`."""
        return self._inner.generation

    @property
    def negotiated_timeout_ms(self) -> int:
        """The session timeout of `inner`."""
        return self._inner.negotiated_timeout_ms

    def listen(self, listener: Listener) -> None:
        """As `Tree.listen`."""
        self._listener = listener

    async def expire(self) -> None:
        """End the session now, as if its timeout had passed without a sign of life."""
        await self._inner.expire()


class HeldTree(ForwardingTree):
    """`inner`, as far as it is let through. `spawn` runs a task that outlives the call; `clock` is the broker's."""

    def __init__(self, inner: ExpirableTree, spawn: Spawn, clock: Clock) -> None:
        super().__init__(inner)
        self._spawn = spawn
        self._clock = clock
        self._is_paused = False
        self._is_cut = False
        self._cuts = 0
        self._let_through = trio.Event()
        self._kept: deque[TreeEvent] = deque()  # bounded by the watches that are set
        self._silence = trio.CancelScope()  # until the session times out
        inner.listen(self._on_event)

    # --- levers

    @property
    def is_paused(self) -> bool:
        """Whether everything waits."""
        return self._is_paused

    def pause(self) -> None:
        """Let nothing through, in either direction, until `resume`."""
        if not self._is_paused:
            self._is_paused = True
            self._begin_silence()

    def resume(self) -> None:
        """Go on, first with what was kept."""
        if self._is_paused:
            self._is_paused = False
            self._end_silence()

    def cut(self) -> None:
        """Break the connection until `restore`."""
        if not self._is_cut:
            self._is_cut = True
            self._cuts += 1
            if self._inner.connected:
                self._on_session(SessionEvent(SessionState.DISCONNECTED, self.generation))
            self._begin_silence()

    def restore(self) -> None:
        """End a cut."""
        if self._is_cut:
            self._is_cut = False
            if self._inner.connected:
                self._on_session(SessionEvent(SessionState.CONNECTED, self.generation))
            self._end_silence()

    def _begin_silence(self) -> None:
        if self._is_paused != self._is_cut:  # it is the first reason
            self._silence = trio.CancelScope()
            self._spawn(partial(self._expire_later, self._silence))

    def _end_silence(self) -> None:
        if not self._is_cut and not self._is_paused:
            self._silence.cancel()
        if not self._is_paused:
            self._release()
            self._let_through.set()
            self._let_through = trio.Event()

    async def _expire_later(self, silence: trio.CancelScope) -> None:
        with silence:
            with self._clock.move_on_at(self._clock.monotonic() + self._inner.negotiated_timeout_ms / 1000):
                await trio.sleep_forever()
            logger.warning("The session 0x%x has timed out: its broker gave no sign of life", self.session_id)
            try:
                await self._inner.expire()
            except t.TreeError as error:
                logger.warning("The end of a session was not saved: %s", error)

    # --- events

    def _on_event(self, event: TreeEvent) -> None:
        self._kept.append(event)
        self._release()

    def _on_session(self, event: SessionEvent) -> None:
        """Of this wrapper's own: a paused broker learns of it later, and before what comes after."""
        if self._is_paused:
            self._kept.append(event)
        elif self._listener is not None:
            self._listener(event)

    def _release(self) -> None:
        while self._kept and not self._is_paused and not self._is_cut:
            event = self._kept.popleft()
            if self._listener is not None:
                self._listener(event)

    # --- the contract

    @property
    def connected(self) -> bool:
        """Whether `inner` is connected and not cut off."""
        return self._inner.connected and not self._is_cut

    async def _wait_let_through(self, *, also_connected: bool) -> None:
        while self._is_paused or (also_connected and self._is_cut):
            await self._let_through.wait()

    async def start(self, timeout: float) -> None:
        """As `Tree.start`."""
        with trio.move_on_after(timeout) as waited:
            await self._wait_let_through(also_connected=True)
        if waited.cancelled_caught:
            raise CoordinationUnavailable("the tree", "the network between this broker and the tree is cut")
        await self._inner.start(timeout)

    async def reopen(self) -> None:
        """As `Tree.reopen`."""
        await self._wait_let_through(also_connected=True)
        await self._inner.reopen()

    async def wait_until_connected(self) -> None:
        """As `Tree.wait_until_connected`."""
        await self._wait_let_through(also_connected=True)
        await self._inner.wait_until_connected()

    async def close(self) -> None:
        """As `Tree.close`, also while it is held."""
        self._silence.cancel()
        self._kept.clear()
        await self._inner.close()

    async def submit_many(self, ops: Sequence[t.Operation]) -> list[t.Result | t.TreeError]:
        """As `Tree.submit_many`."""
        await self._wait_let_through(also_connected=False)
        if self._is_cut:
            await trio.lowlevel.checkpoint()  # a caller that tries again at once lets others run
            return [t.ConnectionLoss(path_of(op)) for op in ops]
        cuts = self._cuts
        results = await self._inner.submit_many(ops)
        await self._wait_let_through(also_connected=False)
        return results if self._cuts == cuts else [t.ConnectionLoss(path_of(op)) for op in ops]
