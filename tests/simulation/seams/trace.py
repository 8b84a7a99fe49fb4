"""What has happened, in order, with simulated times. Two runs of one seed have the same digest."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

KEPT_MAX = 4000
"""Lines that are kept for a report; the digest is of all of them."""


class Trace:
    """`now` returns simulated seconds. With `keeps_all` no line is forgotten."""

    def __init__(self, now: Callable[[], float], *, keeps_all: bool = False) -> None:
        self._now = now
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines: deque[str] = deque(maxlen=None if keeps_all else KEPT_MAX)
        self.count = 0

    def add(self, who: str, what: str) -> None:
        line = f"{self._now():.6f} {who} {what}"
        self.count += 1
        self._hash.update(line.encode())
        self.lines.append(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
