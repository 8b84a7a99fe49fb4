"""The loop-stall gauge: how long one time slice of the loop kept others waiting. It always runs, in tests too."""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

BUCKETS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


class LoopStallGauge(trio.abc.Instrument):
    """Measures from one return of the I/O wait to the next entry: two clock reads for each time slice.

    `counts[i]` time slices took at most `BUCKETS_MS[i]` (the last entry: longer); `max_s` is the longest above 1 ms;
    all since `reset`. `clock` is in seconds; tests take `time.thread_time`, which a busy machine does not stretch.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self.woke = 0.0
        """When the last time slice began, on `clock`."""
        self.busy_s = 0.0
        """All time slices together, since the start."""
        self.max_s = 0.0
        self.slices = 0
        self.counts = [0] * (len(BUCKETS_MS) + 1)

    def reset(self) -> None:
        """Forget everything measured so far."""
        self.max_s = 0.0
        self.slices = 0
        self.counts = [0] * (len(BUCKETS_MS) + 1)

    def percentile_ms(self, share: float) -> float:
        """This share of the time slices was no longer: a bucket's bound, or the longest time slice if that is less."""
        within = 0
        for bound, count in zip(BUCKETS_MS, self.counts, strict=False):
            within += count
            if within >= share * self.slices:
                return min(bound, self.max_s * 1000 or bound)
        return self.max_s * 1000

    def describe(self) -> str:
        """The line of the log that the benchmarks read."""
        return (
            f"Loop stall: {self.slices} time slices, p99.9 {self.percentile_ms(0.999):.1f} ms, "
            f"longest {self.max_s * 1000:.1f} ms"
        )

    def after_io_wait(self, timeout: float) -> None:
        """trio has returned from its I/O wait."""
        self.woke = self._clock()

    def before_io_wait(self, timeout: float) -> None:
        """trio is about to wait: the time slice ends."""
        if not self.woke:
            return
        held_s = self._clock() - self.woke
        self.busy_s += held_s
        self.slices += 1
        if held_s > 0.001:
            if held_s > self.max_s:
                self.max_s = held_s
            self._count(held_s * 1000)
        else:
            self.counts[0] += 1

    def _count(self, held_ms: float) -> None:
        for index, bound in enumerate(BUCKETS_MS):
            if held_ms <= bound:
                self.counts[index] += 1
                return
        self.counts[-1] += 1
