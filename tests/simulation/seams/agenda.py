"""What is to happen at a simulated time: calls of plain functions, in order of their times and then of their entry."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf

import trio

LOOK_S = 0.1


async def until(condition: Callable[[], bool], look_s: float = LOOK_S) -> None:
    """Return once it holds, as of the next look. Looking costs nothing of what is simulated."""
    while True:
        if condition():
            return
        await trio.sleep(look_s)


class Agenda:
    """One task for all delays of a world. A function that is called must not wait."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._sleep = trio.CancelScope()

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Call it then; what is to happen in the past happens soon."""
        is_first = not self._entries or when < self._entries[0][0]
        heappush(self._entries, (when, next(self._numbers), call))
        if is_first:
            self._sleep.deadline = min(self._sleep.deadline, when)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.at(trio.current_time() + seconds, call)

    async def run(self) -> None:
        while True:
            deadline = self._entries[0][0] if self._entries else inf
            with trio.CancelScope(deadline=deadline) as self._sleep:
                await trio.sleep_forever()
            while self._entries and self._entries[0][0] <= trio.current_time():
                heappop(self._entries)[2]()
