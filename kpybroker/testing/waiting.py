"""Waiting for a condition, with an error that says what was there instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from kpybroker.testing.errors import WaitTimeout

WAIT_S: Final = 60.0
"""How long what waits does so unless a test says otherwise: a slow machine gets there, too."""

T = TypeVar("T")

FIRST_PAUSE_S, PAUSE_S_MAX = 0.005, 0.1


def wait_for(
    condition: Callable[[], T], timeout: float, what: str | None = None, seen: Callable[[], object] | None = None
) -> T:
    """The first true result of `condition`. An AssertionError that it raises counts as false.

    Raises WaitTimeout after `timeout` seconds; its text names `what` was waited for and what was `seen` last: by
    default the last result, or the text of the last AssertionError.
    """
    end = time.monotonic() + timeout
    pause = FIRST_PAUSE_S
    while True:
        last: object
        try:
            result = condition()
            if result:
                return result
            last = result
        except AssertionError as error:
            last = error
        left = end - time.monotonic()
        if left <= 0:
            there = last if seen is None else seen()
            cause = f"{what or _name(condition)} did not happen within {timeout:g} s; seen instead: {_shown(there)}"
            raise WaitTimeout(cause, "look at broker.log(), or give it more time with timeout=")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, PAUSE_S_MAX)


def _name(condition: Callable[[], object]) -> str:
    name = getattr(condition, "__name__", "the condition")
    return "the condition" if name == "<lambda>" else name


def _shown(value: object) -> str:
    if isinstance(value, AssertionError):
        return " ".join(str(value).split()) or "an assertion that failed"
    return str(value) if isinstance(value, str) else repr(value)
