"""Turns: how a handler that walks a request of many elements lets others run in between.

A request may hold 10^5 elements; at 10 µs each they would hold the loop for a second. Counted and not timed, so that a
run on a mock clock does the same again.
"""

from __future__ import annotations

import trio

ELEMENTS_BETWEEN_CHECKPOINTS = 200


class Turns:
    """One for a whole request: `await turns.next()` once an element, however deep it lies."""

    __slots__ = ("_elements",)

    def __init__(self) -> None:
        self._elements = 0

    async def next(self) -> None:
        """A checkpoint after so many elements, and nothing otherwise."""
        self._elements += 1
        if self._elements % ELEMENTS_BETWEEN_CHECKPOINTS == 0:
            await trio.lowlevel.checkpoint()
