"""What one look cannot know: which brokers were there before, whether a lag grows, when a disk is full.

Only what a page asked for is remembered, as in `kpybroker.console.queries.samples`, so an idle console asks nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from kpybroker.console.queries.health.checks import GROWS_AFTER_S, GroupLag
from kpybroker.console.queries.samples import Point

REMEMBERED_MS: Final = 7 * 24 * 3_600_000
"""A broker that has been away for longer was taken away."""
BROKERS_MAX: Final = 10_000
GROWS_WITHIN_S: Final = 300.0
GROWS_READINGS: Final = 3
FILLS_AFTER_S: Final = 120.0

T = TypeVar("T")


class SeenBrokers:
    """When each broker was last there; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms: dict[int, int] = {}

    def saw(self, present: frozenset[int], now_ms: int) -> Mapping[int, int]:
        """Remember these, and return all that are remembered, with when they were seen."""
        with self._lock:
            self._last_ms |= dict.fromkeys(sorted(present)[:BROKERS_MAX], now_ms)
            self._last_ms = {one: at for one, at in self._last_ms.items() if now_ms - at <= REMEMBERED_MS}
            return dict(self._last_ms)


class Kept(Generic[T]):
    """A result that serves all viewers for `fresh_s`; while one viewer asks for it, the others wait for that."""

    def __init__(self, fresh_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._fresh_s = fresh_s
        self._now = now
        self._lock = threading.Lock()
        self._found: tuple[float, T] | None = None

    def get(self, ask: Callable[[], T]) -> T:
        """The result, asked for if there is none that is fresh."""
        with self._lock:
            if self._found is None or self._now() - self._found[0] >= self._fresh_s:
                found = ask()
                self._found = self._now(), found
            return self._found[1]


def lag_of(group: str, points: Sequence[Point]) -> GroupLag:
    """The newest lag, and whether it has grown: within GROWS_WITHIN_S it never was lower than at the begin, and is
    higher now. A gap begins a new watch.
    """
    watched: list[tuple[float, float]] = []
    for point in points:
        watched = [*watched, (point.at, point.value)] if point.value is not None else []
    if not watched:
        return GroupLag(group, 0, None, 0.0)
    last_at, last = watched[-1]
    watched = [one for one in watched if last_at - one[0] <= GROWS_WITHIN_S]
    first_at, first = watched[0]
    seconds = last_at - first_at
    is_growing = len(watched) >= GROWS_READINGS and seconds >= GROWS_AFTER_S
    is_growing = is_growing and last > first and min(value for _, value in watched) >= first
    return GroupLag(group, int(last), int(last - first) if is_growing else None, seconds)


def full_in_s(points: Sequence[Point]) -> float | None:
    """When nothing is free any more, at the rate of what was watched; None where it does not fill, or was not watched
    for FILLS_AFTER_S."""
    watched = [(point.at, point.value) for point in points if point.value is not None]
    if len(watched) < GROWS_READINGS or watched[-1][0] - watched[0][0] < FILLS_AFTER_S:
        return None
    fallen = watched[0][1] - watched[-1][1]
    return watched[-1][1] * (watched[-1][0] - watched[0][0]) / fallen if fallen > 0 else None


def trend_of(points: Sequence[Point]) -> str:
    """`grows`, `falls` or `steady`, over the last minutes without a gap; empty where too little was watched."""
    watched: list[Point] = []
    for point in points:
        watched = [*watched, point] if point.value is not None else []
    watched = [one for one in watched if watched[-1].at - one.at <= GROWS_WITHIN_S]
    if len(watched) < GROWS_READINGS or watched[-1].at - watched[0].at < GROWS_AFTER_S:
        return ""
    if lag_of("", watched).grown is not None:
        return "grows"
    return "falls" if (watched[-1].value or 0) < (watched[0].value or 0) else "steady"
