"""A line on a terminal that says how far a copy is, rewritten every second; nothing where no one looks."""

from __future__ import annotations

import sys
import time
from typing import Final

EVERY_S: Final = 1.0
CLEAR: Final = "\r\x1b[K"


class Progress:
    """`show` as often as you like; `clear` before anything else is written."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._since = self._last = time.monotonic()

    def show(self, count: int, left: int) -> None:
        """So many records are copied, and so many offsets are left at least."""
        now = time.monotonic()
        if not self._is_shown or now - self._last < EVERY_S:
            return
        rate = count / (now - self._since)
        self._last = now
        sys.stderr.write(f"{CLEAR}copied {count} records, {rate:.0f}/s, {left} left")
        sys.stderr.flush()

    def clear(self) -> None:
        """The line is empty."""
        if self._is_shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
