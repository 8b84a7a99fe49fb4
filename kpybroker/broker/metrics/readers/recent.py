"""Counts with their rates over the last half minute, as Kafka's newer metrics library has them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.rates import TICK_S
from kpybroker.metrics.reading import Value

WINDOW_S: Final = 30.0
WINDOW_TICKS: Final = int(WINDOW_S / TICK_S)

Cell = tuple[Family, Value]


class RecentRates:
    """Of what `counts` returns, by name. `now_s` is the broker's clock."""

    def __init__(self, counts: Callable[[], Mapping[str, int]], now_s: Callable[[], float]) -> None:
        self._counts = counts
        self._now_s = now_s
        self._history: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=WINDOW_TICKS)

    def tick(self) -> None:
        """A few seconds have passed."""
        self._history.append((self._now_s(), self._counts()))

    def cells(self, families: Iterable[tuple[Family, Family, str]]) -> list[Cell]:
        """The values of pairs of a count and its rate, each with the name of what they count."""
        counts = self._counts()
        began_s, before = self._history[0] if self._history else (0.0, counts)
        elapsed_s = max(self._now_s() - began_s, TICK_S)
        return [
            cell
            for count, rate, name in families
            for cell in ((count, counts[name]), (rate, (counts[name] - before[name]) / elapsed_s))
        ]
