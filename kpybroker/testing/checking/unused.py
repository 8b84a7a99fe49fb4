"""Faults end with what they were made for: a block, a test, a fixture that outlives tests, or their broker.

A fault that has ended without ever acting has shown nothing: it is reported as a failure (`UnusedFault`), or as a
warning where `policy` says so. So is one whose predicate raised.

Each fault that this process makes is in `_made`, in order, until something settles it: its own `with` block, the end of
its broker, or the pytest plugin at the end of a test.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kpybroker.testing.errors import TestingError, UnusedFault, UnusedFaultWarning

if TYPE_CHECKING:
    from types import FrameType


class Ends(Protocol):
    """A fault, as far as its end is concerned."""

    def remove(self) -> None:
        """It acts no more. Raises TestingError where its broker has ended."""

    def problem(self) -> TestingError | None:
        """What is to be reported about it, once."""


Policy = Literal["fail", "warn"]
POLICIES: tuple[Policy, ...] = ("fail", "warn")

policy: Policy = "fail"
"""What becomes of a fault that never acted: the pytest plugin sets it."""
_made: list[Any] = []


def note(fault: Ends) -> None:
    """It was made, and will have to be settled."""
    _made.append(fault)


def count() -> int:
    """How many faults are not settled."""
    return len(_made)


def taken(is_wanted: Callable[[Any], bool] = lambda fault: True, since: int = 0) -> list[Any]:
    """Take those that are wanted off the list, of all that were made after the first `since`."""
    found = [fault for fault in _made[since:] if is_wanted(fault)]
    for fault in found:
        _made.remove(fault)
    return found


def settle(faults: Iterable[Ends]) -> list[TestingError]:
    """Remove these faults; what is to be reported about them."""
    listed = list(faults)
    for fault in reversed(listed):
        try:
            fault.remove()
        except TestingError:
            pass  # its broker has ended: what it did is not known
    return [problem for fault in listed if (problem := fault.problem()) is not None]


def report(problems: list[TestingError]) -> None:
    """Raise the first of these problems, which names all of them; or warn, by `policy`."""
    __tracebackhide__ = True
    unused = [one for one in problems if isinstance(one, UnusedFault)]
    if policy == "warn":
        for one in unused:
            warnings.warn(UnusedFaultWarning(str(one)), stacklevel=3)
        problems = [one for one in problems if one not in unused]
    if not problems:
        return
    first = problems[0]
    if len(problems) > 1:
        causes = "\n".join(one.cause for one in problems)
        raise type(first)(causes, first.fix) from first.__cause__
    raise first


def place() -> str:
    """The line of the program that made a fault: `test_orders.py:12`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("kpybroker."):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
