"""Log lines that strangers cause: the first of its kind at once, the others as a count a minute later."""

from __future__ import annotations

from typing import Final

PERIOD_S: Final = 60.0


class Seldom:
    """One kind of line, at most once in `period_s`."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._next_s: float | None = None
        self._unsaid = 0

    def may_say(self, now: float) -> int | None:
        """How many lines were left out since the last one, if one may be written now; None: leave out this one too."""
        if self._next_s is not None and now < self._next_s:
            self._unsaid += 1
            return None
        unsaid, self._unsaid = self._unsaid, 0
        self._next_s = now + self._period_s
        return unsaid
