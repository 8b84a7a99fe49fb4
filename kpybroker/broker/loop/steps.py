"""Handlers that rarely have to wait, and cost no task and no iteration of the loop when they need not.

Such a handler is a generator that yields what is to be awaited, `yield partial(wait, offset)`, where a coroutine has
`await wait(offset)`. It runs to its end at once if it never yields. Cancel scopes belong into what it yields: another
task than the one that began the generator may resume it.

Some wait only for a call of `Wait.end`. They yield a `Wait`, and are *suspended*: no task is needed to resume them, so
the code that ends the wait, or finds that it has ended, may do it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import trio

T = TypeVar("T")

AsyncCall = Callable[[], Awaitable[Any]]
Steps = Generator[AsyncCall, Any, T]


class Wait:
    """A wait for `end`, or for `deadline` on trio's clock, which the waiting side watches itself."""

    __slots__ = ("deadline", "is_over", "on_end")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.is_over = False
        self.on_end: Callable[[], None] | None = None

    def end(self) -> None:
        """The wait is over; its `on_end` is called, once."""
        if not self.is_over:
            self.is_over = True
            if self.on_end is not None:
                self.on_end()

    async def __call__(self) -> None:
        """Wait in the calling task."""
        woken = trio.Event()
        self.on_end = woken.set
        if self.is_over:
            woken.set()
        with trio.move_on_at(self.deadline):
            await woken.wait()
        self.is_over = True


class Suspended(Generic[T]):
    """Steps that have yielded a `Wait`. Once that is over they `resume`; or they are awaited, or closed."""

    __slots__ = ("_steps", "wait")

    def __init__(self, steps: Steps[T], wait: Wait) -> None:
        self._steps = steps
        self.wait = wait

    def resume(self) -> T | Unfinished[T]:
        """The result, or what to await or resume next. Its wait must be over."""
        return run_steps(self._steps)

    def __await__(self) -> Generator[Any, Any, T]:
        return _resume(self._steps, self.wait).__await__()

    def close(self) -> None:
        """Close the steps; they will never be resumed."""
        self._steps.close()


Unfinished = Coroutine[Any, Any, T] | Suspended[T]
"""Must be awaited or closed."""


def run_steps(steps: Steps[T]) -> T | Unfinished[T]:
    """The result; or, if something must be awaited first, what goes on from there."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return Suspended(steps, wanted) if isinstance(wanted, Wait) else _resume(steps, wanted)


async def run_to_end(steps: Steps[T]) -> T:
    """The result, awaited in the calling task."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return await _resume(steps, wanted)


async def _resume(steps: Steps[T], wanted: AsyncCall) -> T:
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
