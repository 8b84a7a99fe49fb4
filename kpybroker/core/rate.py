"""An amount a second over the last windows: Kafka's `Rate` over ``SampledStat``, to the digit.

Pure; bounded by the number of windows. A window begins with the first record after the one before is over, and is
emptied when its last record is older than all windows together. The sum is divided by the time of all windows but one
at least, so that the first bytes do not count as a burst.
"""

from __future__ import annotations


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value: float = 0


class Rate:
    """`windows` of `window_ms` each (`quota.window.num`, `quota.window.size.seconds` and the like)."""

    __slots__ = ("_current", "_samples", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count `value` at `now_ms`, which never goes back. A negative value takes back what was counted."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> _Sample:
        # One more than there are windows: the oldest one may overlap the measured time.
        self._current = (self._current + 1) % (self._windows + 1)
        if self._current >= len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def measure(self, now_ms: int) -> float:
        """The amount a second over the windows up to `now_ms`; 0.0 where nothing was recorded."""
        if not self._samples:
            return 0.0
        elapsed_ms = self.elapsed_ms(now_ms)
        return sum(sample.value for sample in self._samples) * 1000 / elapsed_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """The time that `measure` divides by, at least 1."""
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._windows * self._window_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self._windows - 1 - elapsed_ms // self._window_ms
        if missing > 0:  # windows that have not started count as full ones
            elapsed_ms += missing * self._window_ms
        return max(elapsed_ms, 1)
