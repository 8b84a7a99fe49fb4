"""Slow work in threads: validating, searching and converting records, one thing at a time and each client in turn.

A thread takes the interpreter's lock from the loop every few milliseconds, so one works at any time. A few bytes may
ask for seconds of work. So that no client waits for another's:

- Work begins in the order of turns (`Turns`), not of arrival.
- It works for `SLICE_S`, and passes the turn on at its next pause (`wire.records.pauses`) if others wait.
- Work that was not done after its first slice is *large*. There is one large work at a time, which keeps what it has
  decompressed between its slices. Another that turns out to be large gives up what it has, and starts again when
  that place is free: so memory is that of two at most, and what is small never waits for what is large.
- It ends at its next pause when it is cancelled, as when its client has left.

Rule: what is run has no effect before its last pause, because it may start again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import trio

from kpybroker.broker.loop.turns import Turns
from kpybroker.wire.records.pauses import PAUSE

T = TypeVar("T")

SLICE_S: Final = 0.02
THREADS_MAX: Final = 2
"""One that works, and the large work that waits for its next slice."""


class _StartAgain(Exception):
    """The work is large, and another large one is in progress."""


class FairLock:
    """A lock that the client takes next whose turn it is."""

    def __init__(self) -> None:
        self.is_held = False
        self._waiting: Turns[trio.lowlevel.Task] = Turns()

    @property
    def is_wanted(self) -> bool:
        """Whether a task waits for it."""
        return bool(self._waiting)

    def take_now(self) -> bool:
        """Take it if it is free; whether it was."""
        was_free = not self.is_held
        self.is_held = True
        return was_free

    async def take(self, client: Hashable) -> None:
        """Take it when it is free and the client's turn."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.take_now():
            return
        task = trio.lowlevel.current_task()
        self._waiting.put(client, task)

        def abort(_: object) -> trio.lowlevel.Abort:
            self._waiting.discard(client, task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def release(self) -> None:
        """Hand it to the next one that waits."""
        if self._waiting:
            trio.lowlevel.reschedule(self._waiting.take())
        else:
            self.is_held = False


class SlowWork:
    """What does all slow work of one broker. `clock` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._turn = FairLock()
        self._place = FairLock()
        self._threads = trio.CapacityLimiter(THREADS_MAX)

    @property
    def is_busy(self) -> bool:
        """Whether there is work in progress."""
        return self._turn.is_held or self._place.is_held

    def of(self, client: Hashable) -> ClientsWork:
        """For the work of one client."""
        return ClientsWork(self, client)

    async def run(self, client: Hashable, function: Callable[[], T]) -> T:
        """`function` in a thread, when it is the client's turn. Cancelled, it ends at its next pause."""
        work = _Work(self._turn, self._place, client, self._clock)
        try:
            async with work.turn():
                return await self._in_thread(work, function)
        except _StartAgain:
            pass
        await self._place.take(client)
        work.is_large = True
        async with work.turn():
            return await self._in_thread(work, function)

    async def _in_thread(self, work: _Work, function: Callable[[], T]) -> T:
        token = PAUSE.set(work.pause)  # the thread has a copy of this context
        try:
            return await trio.to_thread.run_sync(function, limiter=self._threads)
        finally:
            PAUSE.reset(token)


class ClientsWork:
    """`SlowWork.run` for one client."""

    def __init__(self, work: SlowWork, client: Hashable) -> None:
        self._work = work
        self._client = client

    async def run(self, function: Callable[[], T]) -> T:
        """As `SlowWork.run`."""
        return await self._work.run(self._client, function)


class _Work:
    """One function that is run, and what it holds."""

    def __init__(self, turn: FairLock, place: FairLock, client: Hashable, clock: Callable[[], float]) -> None:
        self._turn = turn
        self._place = place
        self._client = client
        self._clock = clock
        self._slice_end = 0.0
        self._has_turn = False
        self.is_large = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Holds the turn; at the end everything is released."""
        try:
            await self._take_turn()
            yield
        finally:
            if self._has_turn:
                self._has_turn = False
                self._turn.release()
            if self.is_large:
                self.is_large = False
                self._place.release()

    async def _take_turn(self) -> None:
        await self._turn.take(self._client)
        self._has_turn = True
        self._slice_end = self._clock() + SLICE_S

    def pause(self) -> None:
        """Called in the thread. Raises trio.Cancelled, and _StartAgain."""
        trio.from_thread.check_cancelled()
        if self._clock() > self._slice_end and self._turn.is_wanted:
            trio.from_thread.run(self._pass_turn)

    async def _pass_turn(self) -> None:
        if not self.is_large:
            if not self._place.take_now():
                raise _StartAgain
            self.is_large = True
        self._has_turn = False
        self._turn.release()
        await self._take_turn()
