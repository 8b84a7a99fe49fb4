"""A distribution of whole numbers in fixed buckets: what a request's times are counted in.

Buckets are an eighth of a power of two wide, so a quantile is at most 6 % off, and memory is bounded by `BUCKETS`.
Count, sum, min and max are of everything since the start. Quantiles are of the last one to two windows (`rotate`), as
Yammer's reservoir favours the last five minutes; without `rotate` they are of everything.
"""

from __future__ import annotations

from typing import Final

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""Those of Kafka's MBeans."""

EXACT: Final = 16
"""Values below this have a bucket each."""
BITS_MAX: Final = 36
VALUE_MAX: Final = (1 << BITS_MAX) - 1
"""Larger values count as this one."""
BUCKETS: Final = EXACT + (BITS_MAX - 4) * 8


class Histogram:
    """`scale` is a recorded unit in the family's unit: 0.001 where microseconds are recorded of milliseconds."""

    __slots__ = ("_current", "_previous", "count", "max", "min", "scale", "total")

    def __init__(self, scale: float = 1) -> None:
        self.scale = scale
        self.count = 0
        self.total = 0
        self.min = 0
        self.max = 0
        self._current = [0] * BUCKETS
        self._previous: list[int] | None = None

    def record(self, value: int, weight: int = 1) -> None:
        """Count a value, which stands for `weight` of them. Negative ones count as 0."""
        if value < 0:
            value = 0
        elif value > VALUE_MAX:
            value = VALUE_MAX
        if value > self.max:
            self.max = value
        if value < self.min or not self.count:
            self.min = value
        self.count += weight
        self.total += value * weight
        shift = value.bit_length() - 4
        index = value if shift <= 0 else (shift << 3) + (value >> shift)
        self._current[index] += weight

    def rotate(self) -> None:
        """A window is over: quantiles forget the one before it."""
        self._previous = self._current
        self._current = [0] * BUCKETS

    @property
    def sum(self) -> float:
        """Of everything, in the family's unit."""
        return self.total * self.scale

    @property
    def mean(self) -> float:
        """Of everything, in the family's unit; 0 without a value."""
        return self.total * self.scale / self.count if self.count else 0.0

    def quantiles(self, shares: tuple[float, ...] = QUANTILES) -> list[float]:
        """The value that this share does not exceed, for rising shares, in the family's unit; 0 without a value."""
        counts = self._current
        if self._previous is not None:
            counts = [now + before for now, before in zip(counts, self._previous, strict=True)]
        total = sum(counts)
        if not total:
            return [0.0] * len(shares)
        found: list[float] = []
        index, seen = 0, counts[0]
        for share in shares:
            while seen < share * total:
                index += 1
                seen += counts[index]
            found.append(_middle(index) * self.scale)
        return found


def _middle(index: int) -> float:
    """The middle of a bucket."""
    if index < EXACT:
        return index
    shift = (index >> 3) - 1
    return ((index & 7) + 8.5) * (1 << shift) - 0.5
