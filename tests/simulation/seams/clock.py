"""A broker's wall clock: it drifts against the others', and may jump."""

from __future__ import annotations

from contextlib import AbstractContextManager

import trio

from kpybroker.broker.loop.clock import Clock

EPOCH_MS = 1_800_000_000_000
"""What a clock that neither drifts nor has jumped says when the world begins."""


class SimulatedClock(Clock):
    """`rate`: its seconds in one of the world's. Only the wall clock jumps; `monotonic` runs on."""

    def __init__(self, rate: float = 1.0, offset_ms: int = 0) -> None:
        self.rate = rate
        self.offset_ms = offset_ms

    def time_ms(self) -> int:
        """As `Clock.time_ms`."""
        return EPOCH_MS + self.offset_ms + int(trio.current_time() * self.rate * 1000)

    def monotonic(self) -> float:
        """As `Clock.monotonic`."""
        return trio.current_time() * self.rate

    def move_on_at(self, deadline: float) -> AbstractContextManager[object]:
        """As `Clock.move_on_at`."""
        return trio.move_on_after(max(deadline - self.monotonic(), 0) / self.rate)
