"""Waiting for a condition, never for a length of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.05


def eventually(check: Callable[[], T | None], what: str, deadline_s: float = 120.0) -> T:
    """Call `check` until it returns something true, and return that; its last result or exception is in the failure.

    AssertionError from `check` means "not yet", so a check may hold plain asserts and then return True.
    """
    end = time.monotonic() + deadline_s
    while True:
        seen: object
        try:
            result = check()
            if result:
                return result
            seen = result
        except AssertionError as error:
            seen = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}; last seen: {seen}")
        time.sleep(POLL_S)
