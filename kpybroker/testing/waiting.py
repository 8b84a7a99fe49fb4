"""Waiting for a condition, with an error that says what was there instead."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kpybroker.testing.checking import kinds
from kpybroker.testing.checking.calls import checked
from kpybroker.testing.errors import UsageError, WaitTimeout

WAIT_S: Final = 60.0
"""How long what waits does so unless a test says otherwise: a slow machine gets there, too."""

T = TypeVar("T")

FIRST_PAUSE_S, PAUSE_S_MAX = 0.005, 0.1


@checked(
    condition=kinds.function,
    timeout=kinds.timeout,
    what=kinds.optional(kinds.text),
    seen=kinds.optional(kinds.function),
)
def wait_for(
    condition: Callable[[], T],
    timeout: float = WAIT_S,
    what: str | None = None,
    seen: Callable[[], object] | None = None,
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
                check_decided(result, "the condition")
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


def check_decided(result: Any, what: str) -> None:
    """Raise UsageError for a result that is true whatever it would give: a coroutine, a generator, a function."""
    if inspect.iscoroutine(result):
        result.close()
        raise UsageError(
            f"{what} returned a coroutine, which is always true", "give a function that is not a coroutine"
        )
    if inspect.isroutine(result):
        raise UsageError(f"{what} returned a function, which is always true", "call it: add () to its name")
    if hasattr(result, "__next__") and type(result).__module__ == "builtins":  # a file is true, too
        raise UsageError(f"{what} returned an iterator, which is always true", "return a list of it: list(...)")


def _name(condition: Callable[[], object]) -> str:
    name = getattr(condition, "__name__", "the condition")
    return "the condition" if name == "<lambda>" else name


def _shown(value: object) -> str:
    if isinstance(value, AssertionError):
        return " ".join(str(value).split()) or "an assertion that failed"
    return str(value) if isinstance(value, str) else repr(value)
