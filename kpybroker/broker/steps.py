"""Handlers that mostly have nothing to wait for, and then cost no task and no turn of the loop.

Such a handler is a generator that yields what is to be awaited, `yield partial(wait, offset)`, where a coroutine says
`await wait(offset)`. It runs to its end at once if it never yields. Cancel scopes belong into what it yields: the
generator itself may go on in another task than the one that began it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")

Wanted = Callable[[], Awaitable[Any]]
Steps = Generator[Wanted, Any, T]


def run_steps(steps: Steps[T]) -> T | Coroutine[Any, Any, T]:
    """The result; a coroutine that goes on from there if something is to be awaited first."""
    try:
        wanted = next(steps)
    except StopIteration as finished:
        result: T = finished.value
        return result
    return _go_on(steps, wanted)


async def _go_on(steps: Steps[T], wanted: Wanted) -> T:
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
