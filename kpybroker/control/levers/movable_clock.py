"""A clock that a test moves: `advance` makes hours of the broker's time pass at once, timer by timer.

What `advance` guarantees:

- **Timers run in the order of their deadlines**, each at its time: `time_ms` and `monotonic` stay at a timer's deadline
  until everything that it sets off has come to rest. Timers that are set on the way run too, if they are due.
- **Periodic tasks** (`pause`: retention, compaction, expiry of producers, transactions and offsets, idle connections)
  run as they are due, but at most `PERIODS_MAX` times in one advance, so that a day costs about as much as a minute;
  and once more at its end, so that everything that is due by then has been done.
- The machine's time is not moved. No long poll ends, and no request between brokers times out.

It never goes back. Between two advances it runs as fast as the machine's clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import trio

from kpybroker.broker.loop.clock import Clock

PERIODS_MAX = 100

Rest = Callable[[], Awaitable[None]]
"""Returns when nothing is left that can go on without waiting for a client, or for the time."""


class _Timer:
    """A block that waits. `is_periodic`: it is a pause between two runs of a task."""

    __slots__ = ("deadline", "is_over", "is_periodic", "scope")

    def __init__(self, deadline: float, is_periodic: bool) -> None:
        self.deadline = deadline
        self.is_periodic = is_periodic
        self.is_over = False
        self.scope = trio.CancelScope()

    def end(self) -> None:
        self.is_over = True
        self.scope.cancel()


class MovableClock(Clock):
    """One for all brokers of a process: what is ordered by time is ordered across them."""

    def __init__(self) -> None:
        self._ahead_s = 0.0  # of trio's clock
        self._ahead_ms = 0  # of the wall clock
        self._now: float | None = None  # where the time is held, during an advance
        self._wall_ms = 0  # the same
        self._began, self._began_ms = 0.0, 0
        self._period_s = 0.0
        self._timers: dict[_Timer, None] = {}  # in the order in which they were set
        self._advancing = trio.Lock()

    def time_ms(self) -> int:
        """Milliseconds since the epoch."""
        return _machine_ms() + self._ahead_ms if self._now is None else self._wall_ms

    def monotonic(self) -> float:
        """Seconds."""
        return trio.current_time() + self._ahead_s if self._now is None else self._now

    @property
    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's clock; 0, and nothing else, until it is moved."""
        return self._ahead_ms if self._now is None else self._wall_ms - _machine_ms()

    def move_on_at(self, deadline: float) -> AbstractContextManager[object]:
        """As `Clock.move_on_at`."""
        return self._waiting(_Timer(deadline, is_periodic=False))

    def pausing(self, seconds: float) -> AbstractContextManager[object]:
        """As `Clock.pausing`; during an advance it ends with a whole period of that."""
        deadline = self.monotonic() + seconds
        if seconds > 0 and self._now is not None and self._period_s > 0:
            periods = math.ceil((deadline - self._began) / self._period_s)
            deadline = max(deadline, self._began + periods * self._period_s)
        return self._waiting(_Timer(deadline, is_periodic=True))

    @contextmanager
    def _waiting(self, timer: _Timer) -> Iterator[None]:
        self._timers[timer] = None
        self._arm(timer)
        try:
            with timer.scope:
                yield
        finally:
            del self._timers[timer]

    def _arm(self, timer: _Timer) -> None:
        """Let it end by itself, unless an advance is in progress, which ends it in its order."""
        left_s = timer.deadline - self.monotonic()
        if self._now is None or left_s <= 0:
            timer.scope.deadline = trio.current_time() + left_s
        else:
            timer.scope.deadline = math.inf

    async def advance(self, ms: int, rest: Rest) -> None:
        """Move it by `ms`, see above. Advances are made one after the other. If cancelled, it stays where it is."""
        async with self._advancing:
            self._hold()
            try:
                end = self._began + ms / 1000
                self._period_s = ms / 1000 / PERIODS_MAX
                await rest()
                while (timer := self._first_due(end)) is not None:
                    self._set(timer.deadline)
                    timer.end()
                    await rest()
                self._set(end)
                for timer in [timer for timer in self._timers if timer.is_periodic]:
                    timer.end()
                    await rest()
            finally:
                self._release()

    def _first_due(self, end: float) -> _Timer | None:
        due = [timer for timer in self._timers if timer.deadline <= end and not timer.is_over]
        return min(due, key=lambda timer: timer.deadline, default=None)

    def _hold(self) -> None:
        self._wall_ms, self._now = self.time_ms(), self.monotonic()
        self._began, self._began_ms = self._now, self._wall_ms
        for timer in self._timers:
            self._arm(timer)

    def _set(self, now: float) -> None:
        assert self._now is not None
        if now > self._now:
            self._now = now
            self._wall_ms = self._began_ms + round((now - self._began) * 1000)

    def _release(self) -> None:
        assert self._now is not None
        self._ahead_s = self._now - trio.current_time()
        self._ahead_ms = self._wall_ms - _machine_ms()
        self._now = None
        for timer in self._timers:
            self._arm(timer)


def _machine_ms() -> int:
    return time.time_ns() // 1_000_000
