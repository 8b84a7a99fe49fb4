"""`Samples`: a short memory of numbers that pages have seen, for rates and charts.

Only what a page asked for is remembered, so an idle console asks the cluster nothing. Bounded: KEYS_MAX keys with
POINTS_MAX points, no closer than SPACING_S.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

KEYS_MAX: Final = 2000
POINTS_MAX: Final = 300
SPACING_S: Final = 0.5
RATE_S: Final = 30.0
"""A rate is over the points of so many seconds."""


class Point(NamedTuple):
    """A value and when it was seen, in seconds since 1970."""

    at: float
    value: float


class Samples:
    """`now` is the time in seconds since 1970."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._points: OrderedDict[str, deque[Point]] = OrderedDict()

    def add(self, key: str, value: float) -> None:
        """Remember a value as of now; the least recently used key is forgotten first."""
        with self._lock:
            points = self._points.setdefault(key, deque(maxlen=POINTS_MAX))
            self._points.move_to_end(key)
            while len(self._points) > KEYS_MAX:
                self._points.popitem(last=False)
            point = Point(self._now(), value)
            if not points or point.at - points[-1].at >= SPACING_S:
                points.append(point)

    def points(self, key: str) -> list[Point]:
        """The remembered points, oldest first."""
        with self._lock:
            return list(self._points.get(key, ()))

    def rate(self, key: str) -> float | None:
        """How much the value grows each second, lately; None for fewer than two points."""
        points = self.points(key)
        if len(points) < 2:
            return None
        recent = [point for point in points if point.at >= points[-1].at - RATE_S]
        first = recent[0] if len(recent) > 1 else points[-2]
        return max(0.0, (points[-1].value - first.value) / (points[-1].at - first.at))

    def rates(self, key: str) -> list[Point]:
        """The rate between each two neighbouring points."""
        points = self.points(key)
        return [
            Point(after.at, max(0.0, (after.value - before.value) / (after.at - before.at)))
            for before, after in pairwise(points)
        ]
