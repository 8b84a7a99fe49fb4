"""The clock: the only source of time in a broker."""

from __future__ import annotations

import time
from typing import Protocol

import trio


class Clock(Protocol):
    """What a broker asks for the time; tests give one that they move."""

    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, as Kafka's timestamps."""

    def monotonic(self) -> float:
        """Seconds on trio's clock: deadlines and durations."""


class SystemClock:
    """The machine's clock."""

    def time_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds on trio's clock."""
        return trio.current_time()
