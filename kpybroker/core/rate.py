"""Bytes a second over the last windows: Kafka's `Rate` over `SampledStat`.

Pure; bounded by the number of windows. A window begins with its first record after the one before is over, and is
forgotten when it began longer ago than all windows last together. The time that the sum is divided by is at least that
of all windows but one, so that the first bytes are no burst.
"""

from __future__ import annotations

from collections import deque


class Rate:
    """`windows_max` of `window_ms` each (`replication.quota.window.num`, `.size.seconds`)."""

    __slots__ = ("_samples", "_window_ms", "_windows_max")

    def __init__(self, windows_max: int, window_ms: int) -> None:
        self._windows_max = windows_max
        self._window_ms = window_ms
        self._samples: deque[list[int]] = deque()  # [began at, sum]

    def record(self, value: int, now_ms: int) -> None:
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append([now_ms, 0])
            if len(self._samples) > self._windows_max:
                self._samples.popleft()
        self._samples[-1][1] += value

    def measure(self, now_ms: int) -> float:
        """Per second."""
        while self._samples and now_ms - self._samples[0][0] >= self._windows_max * self._window_ms:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        elapsed_ms = now_ms - self._samples[0][0]
        # Windows that have not been begun count as full ones.
        full_windows = elapsed_ms // self._window_ms
        if full_windows < self._windows_max - 1:
            elapsed_ms += (self._windows_max - 1 - full_windows) * self._window_ms
        return sum(sample[1] for sample in self._samples) * 1000 / max(elapsed_ms, self._window_ms)
