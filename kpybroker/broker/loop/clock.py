"""The clock of what a broker keeps: sessions, transactions, retention, producer ids. Tests move it.

Two kinds of time pass in a broker:

- *the broker's time*, this clock: what Kafka remembers gets older by it. Timers of it wait by `move_on_at` and `pause`;
- *the machine's time*, trio's own clock, which no one can move: what waits for a client, for another broker or for a
  disk. Long polls, request timeouts, connection attempts, checkpoints and flushes wait by trio itself.

In a real run the two are the same.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Protocol

import trio


class Clock(Protocol):
    """What a broker asks for its time. A clock that derives from this one waits in the machine's time."""

    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, as Kafka's timestamps."""

    def monotonic(self) -> float:
        """Seconds that pass as `time_ms` does: durations, and the deadlines of `move_on_at`."""

    def move_on_at(self, deadline: float) -> AbstractContextManager[object]:
        """A block that is left when `monotonic` reaches `deadline`."""
        return trio.move_on_after(max(deadline - self.monotonic(), 0))

    def pausing(self, seconds: float) -> AbstractContextManager[object]:
        """A block that is left after the pause of a periodic task. A clock that is moved far may make it longer."""
        return trio.move_on_after(seconds)

    async def pause(self, seconds: float) -> None:
        """Wait as long as `pausing` says."""
        with self.pausing(seconds):
            await trio.sleep_forever()


class SystemClock(Clock):
    """The machine's clock."""

    def time_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds on trio's clock."""
        return trio.current_time()
