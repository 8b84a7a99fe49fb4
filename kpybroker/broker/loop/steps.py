"""Handlers that rarely have to wait, and cost no task and no iteration of the loop when they need not.

Such a handler is a generator that yields what is to be awaited, `yield partial(wait, offset)`, where a coroutine has
`await wait(offset)`. It runs to its end at once if it never yields. Cancel scopes belong into what it yields: another
task than the one that began the generator may resume it.

Some wait only for a call of `Wait.end`. They yield a `Wait`, and are *suspended*: no task is needed to resume them, so
the code that ends the wait, or finds that it has ended, may do it. Steps that have yielded are `Pending`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, ClassVar, Generic, Literal, TypeVar

import trio

T = TypeVar("T")

AsyncCall = Callable[[], Awaitable[Any]]
Steps = Generator[AsyncCall, Any, T]


class Wait:
    """A wait for `end`, or for `deadline` on trio's clock, which the waiting side watches itself.

    `serves_rest`: as of `ConnectionInfo.may_leave`, within which a suspended request always is.
    """

    __slots__ = ("deadline", "is_over", "on_end", "serves_rest")

    def __init__(self, deadline: float, *, serves_rest: bool = False) -> None:
        self.deadline = deadline
        self.serves_rest = serves_rest
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


class Pending(Generic[T]):
    """Steps that have yielded: they are resumed, advanced or awaited, or closed.

    `wait`: what they wait for, where that is a `Wait`. They are suspended then, and `resume` goes on once it is over.
    """

    __slots__ = ("_steps", "_wanted", "wait")

    is_pending: ClassVar[Literal[True]] = True

    def __init__(self, steps: Steps[T], wanted: AsyncCall) -> None:
        self._steps = steps
        self._wanted = wanted
        self.wait = wanted if isinstance(wanted, Wait) else None

    def resume(self) -> T | Pending[T]:
        """The result, or what goes on from there. Its wait must be over."""
        return run_steps(self._steps)

    async def advance(self) -> T | Pending[T]:
        """Await what they have yielded, and go on to their next yield, or their end."""
        steps = self._steps
        try:
            try:
                result = await self._wanted()
            except BaseException as error:
                wanted = steps.throw(error)
            else:
                wanted = steps.send(result)
        except StopIteration as finished:
            value: T = finished.value
            return value
        return Pending(steps, wanted)

    def __await__(self) -> Generator[Any, Any, T]:
        return _resume(self._steps, self._wanted).__await__()

    def as_steps(self) -> Steps[T]:
        """The same as a part of other steps; closing those closes it."""
        wanted = self._wanted
        try:
            while True:
                try:
                    result = yield wanted
                except GeneratorExit:
                    raise
                except BaseException as error:
                    wanted = self._steps.throw(error)
                else:
                    wanted = self._steps.send(result)
        except StopIteration as finished:
            value: T = finished.value
            return value
        finally:
            self.close()

    def close(self) -> None:
        """Close the steps; they will never be resumed, and the end of their wait is of no interest."""
        self._steps.close()
        if self.wait is not None:
            self.wait.on_end = None


def run_steps(steps: Steps[T]) -> T | Pending[T]:
    """The result; or, if something must be awaited first, what goes on from there."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return Pending(steps, wanted)


def pending(coroutine: Coroutine[Any, Any, T]) -> Pending[T]:
    """A coroutine that a task awaits."""
    steps = _of_coroutine(coroutine)
    return Pending(steps, next(steps))


def _of_coroutine(coroutine: Coroutine[Any, Any, T]) -> Steps[T]:
    try:
        result: T = yield lambda: coroutine
        return result
    finally:
        coroutine.close()


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
