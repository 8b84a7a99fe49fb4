"""Why `kpybroker ping` has failed."""

from __future__ import annotations


class NoBroker(Exception):
    """No broker responds at the address: the cause, and what to do."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
