"""Rates of a growing count, as Yammer's Meter has them: of the last 1, 5 and 15 minutes, and since the start.

The averages are exponentially weighted and move at `tick`, every `TICK_S`, from the count alone: what is counted costs
nothing more than the count.
"""

from __future__ import annotations

import math
from typing import Final

TICK_S: Final = 5.0
_ALPHA_1, _ALPHA_5, _ALPHA_15 = (1 - math.exp(-TICK_S / 60 / minutes) for minutes in (1, 5, 15))


class Rates:
    """Of one count, which is `count` at `now_s`."""

    __slots__ = ("_began_s", "_has_ticked", "_last", "fifteen_minutes", "five_minutes", "one_minute")

    def __init__(self, count: int, now_s: float) -> None:
        self._began_s = now_s
        self._last = count
        self._has_ticked = False
        self.one_minute = self.five_minutes = self.fifteen_minutes = 0.0

    def tick(self, count: int) -> None:
        """`TICK_S` have passed, and the count is this now."""
        rate = (count - self._last) / TICK_S
        self._last = count
        if not self._has_ticked:
            self._has_ticked = True
            self.one_minute = self.five_minutes = self.fifteen_minutes = rate
            return
        self.one_minute += _ALPHA_1 * (rate - self.one_minute)
        self.five_minutes += _ALPHA_5 * (rate - self.five_minutes)
        self.fifteen_minutes += _ALPHA_15 * (rate - self.fifteen_minutes)

    def mean(self, count: int, now_s: float) -> float:
        """A second, of everything: `count` at `now_s`."""
        elapsed_s = now_s - self._began_s
        return count / elapsed_s if elapsed_s > 0 else 0.0
