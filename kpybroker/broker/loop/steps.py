"""Handlers that mostly have nothing to wait for, and then cost no task and no turn of the loop.

Such a handler is a generator that yields what is to be awaited, `yield partial(wait, offset)`, where a coroutine says
`await wait(offset)`. It runs to its end at once if it never yields. Cancel scopes belong into what it yields: the
generator itself may go on in another task than the one that began it.

Some wait only until somebody says so. They yield a `Wait`, and are *suspended*: no task is needed to go on with
them, so that whoever ends the wait, or sees that it has ended, may do it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import trio

T = TypeVar("T")

Wanted = Callable[[], Awaitable[Any]]
Steps = Generator[Wanted, Any, T]


class Wait:
    """Until somebody calls `end`, or until `deadline` on trio's clock, which is the business of whoever waits."""

    __slots__ = ("deadline", "is_over", "on_end")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.is_over = False
        self.on_end: Callable[[], None] | None = None

    def end(self) -> None:
        if not self.is_over:
            self.is_over = True
            if self.on_end is not None:
                self.on_end()

    async def __call__(self) -> None:
        """Wait in a task of one's own."""
        woken = trio.Event()
        self.on_end = woken.set
        if self.is_over:
            woken.set()
        with trio.move_on_at(self.deadline):
            await woken.wait()
        self.is_over = True


class Suspended(Generic[T]):
    """Steps that stand at a `Wait`. Once it is over they `resume`; or they are awaited, or closed."""

    __slots__ = ("_steps", "wait")

    def __init__(self, steps: Steps[T], wait: Wait) -> None:
        self._steps = steps
        self.wait = wait

    def resume(self) -> T | Unfinished[T]:
        return run_steps(self._steps)

    def __await__(self) -> Generator[Any, Any, T]:
        return _resume(self._steps, self.wait).__await__()

    def close(self) -> None:
        self._steps.close()


Unfinished = Coroutine[Any, Any, T] | Suspended[T]
"""To be awaited, or closed."""


def run_steps(steps: Steps[T]) -> T | Unfinished[T]:
    """The result; where something is to be awaited first, what goes on from there."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return Suspended(steps, wanted) if isinstance(wanted, Wait) else _resume(steps, wanted)


async def run_to_end(steps: Steps[T]) -> T:
    """In a task of one's own, whatever they wait for."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return await _resume(steps, wanted)


async def _resume(steps: Steps[T], wanted: Wanted) -> T:
    try:
        while True:
            try:
                result = await wanted()
            except BaseException as error:
                wanted = steps.throw(error)
            else:
                wanted = steps.send(result)
    except StopIteration as finished:
        value: T = finished.value
        return value
