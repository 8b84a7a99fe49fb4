"""The clock seam: the only place from which a broker learns the time."""

from __future__ import annotations

import time
from typing import Protocol

import trio


class Clock(Protocol):
    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, as Kafka's timestamps."""
        ...

    def monotonic(self) -> float:
        """Seconds on trio's clock: deadlines and durations."""
        ...


class SystemClock:
    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return trio.current_time()
