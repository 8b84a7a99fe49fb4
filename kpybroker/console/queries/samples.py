"""`Samples`: a memory of numbers with the time at which they were read, for rates and charts; one for all viewers.

Only what a page asked for is remembered, so an idle console asks the cluster nothing, and a time in which no page asked
is a gap. A number is kept once, however many pages show it: a reading that is closer than a step to the one before it
replaces it or is left out. Each range of RANGES has its own steps, so six hours cost as little as fifteen minutes.

A rate is over the readings of WINDOW_S, from their own times. Where a counter was lower than before, its broker or
topic began again: no rate is known there.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

KEYS_MAX: Final = 2000
WINDOW_S: Final = 10.0
RATE_GAP_S: Final = 60.0
"""The newest rate is over readings that are no further apart, and no older."""
TAIL: Final = 12
"""Readings that the newest rate may need."""
GAP_STEPS: Final = 4
"""Readings that are further apart than so many steps, and than GAP_S_MIN, have a gap between them."""
GAP_S_MIN: Final = 15.0
CLOCK_S_MAX: Final = 5.0
"""A clock that went back by more begins a new memory."""


class Range(NamedTuple):
    """How long a chart reaches back, and how close its readings are."""

    seconds: int
    step_s: float

    @property
    def gap_s(self) -> float:
        """How far readings may be apart without a gap."""
        return max(GAP_S_MIN, GAP_STEPS * self.step_s)


RANGES: Final = {"15m": Range(15 * 60, 2.0), "1h": Range(60 * 60, 15.0), "6h": Range(6 * 60 * 60, 60.0)}
DEFAULT: Final = "15m"
POINTS_MAX: Final = max(int(one.seconds / one.step_s) for one in RANGES.values())
SPARE: Final = 1.25
"""How many times its range a memory may hold before what is too old is cut off."""


class Point(NamedTuple):
    """A value and when it was read, in seconds since 1970; None for a gap."""

    at: float
    value: float | None


class _Ring:
    """The readings of one range."""

    def __init__(self, kept: Range) -> None:
        self._kept = kept
        self.times = array("d")
        self.values = array("d")

    def add(self, at: float, value: float) -> None:
        """A reading, of which only the first of a step is kept."""
        if self.times and at - self.times[-1] < self._kept.step_s * 0.99:
            return
        self.times.append(at)
        self.values.append(value)
        if len(self.times) > SPARE * POINTS_MAX or at - self.times[0] > SPARE * self._kept.seconds:
            first = bisect_left(self.times, at - self._kept.seconds)
            del self.times[:first], self.values[:first]


class Samples:
    """`now` is the time in seconds since 1970."""

    def __init__(self, now: Callable[[], float] = time.time, keys_max: int = KEYS_MAX) -> None:
        self._now = now
        self._keys_max = keys_max
        self._lock = threading.Lock()
        self._rings: OrderedDict[str, dict[str, _Ring]] = OrderedDict()
        self._last: dict[str, tuple[float, float]] = {}

    def now(self) -> float:
        """The time, to be taken when a number is read."""
        return self._now()

    def is_fresh(self, key: str, seconds: float) -> bool:
        """Whether the number was read within so many seconds: another viewer's reading is as good."""
        with self._lock:
            last = self._last.get(key)
            return last is not None and 0 <= self._now() - last[0] < seconds

    def add(self, key: str, value: float, at: float | None = None) -> None:
        """Remember a value that was read at a time, now by default; the least recently used key is forgotten first."""
        at = self._now() if at is None else at
        with self._lock:
            last = self._last.get(key)
            if last is not None and at < last[0] - CLOCK_S_MAX:
                del self._rings[key]
            elif last is not None and at <= last[0]:
                return
            rings = self._rings.setdefault(key, {name: _Ring(one) for name, one in RANGES.items()})
            self._rings.move_to_end(key)
            while len(self._rings) > self._keys_max:
                gone, _ = self._rings.popitem(last=False)
                del self._last[gone]
            self._last[key] = at, value
            for ring in rings.values():
                ring.add(at, value)

    def points(self, key: str, kept: str = DEFAULT) -> list[Point]:
        """The values of a range, oldest first, with a None in each gap."""
        times, values = self._read(key, kept)
        return _with_gaps([Point(at, value) for at, value in zip(times, values, strict=True)], RANGES[kept].gap_s)

    def rates(self, key: str, kept: str = DEFAULT) -> list[Point]:
        """How much the value grew each second, over the readings of WINDOW_S before each of them."""
        return _trimmed(_rates(*self._read(key, kept), RANGES[kept].gap_s))

    def rate(self, key: str) -> float | None:
        """The newest rate; None where there is none yet, or none any more."""
        times, values = self._read(key, DEFAULT)
        found = _rates(times[-TAIL:], values[-TAIL:], RATE_GAP_S)
        return found[-1].value if found and self._now() - found[-1].at <= RATE_GAP_S else None

    def _read(self, key: str, kept: str) -> tuple[Sequence[float], Sequence[float]]:
        with self._lock:
            rings = self._rings.get(key)
            if rings is None:
                return (), ()
            times, values = list(rings[kept].times), list(rings[kept].values)
            at, value = self._last[key]
        if at > times[-1]:  # the newest number is shown, too
            times, values = [*times, at], [*values, value]
        first = bisect_left(times, self._now() - RANGES[kept].seconds)
        return times[first:], values[first:]


def _rates(times: Sequence[float], values: Sequence[float], gap_s: float) -> list[Point]:
    found: list[Point] = []
    begin = 0  # of the readings without a gap
    for number in range(1, len(times)):
        if times[number] - times[number - 1] > gap_s or values[number] < values[number - 1]:
            begin = number
            found.append(Point(times[number], None))
            continue
        first = min(max(begin, bisect_left(times, times[number] - WINDOW_S, 0, number)), number - 1)
        grown = (values[number] - values[first]) / (times[number] - times[first])
        found.append(Point(times[number], grown))
    return found


def _with_gaps(points: Sequence[Point], gap_s: float) -> list[Point]:
    found: list[Point] = []
    for point in points:
        if found and point.at - found[-1].at > gap_s:
            found.append(Point(found[-1].at + gap_s / 2, None))
        found.append(point)
    return found


def _trimmed(points: list[Point]) -> list[Point]:
    """Without gaps at both ends."""
    while points and points[0].value is None:
        points.pop(0)
    while points and points[-1].value is None:
        points.pop()
    return points
