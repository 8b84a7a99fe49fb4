"""Turns: how a handler that walks a request of many elements, or does long sums, lets others run in between.

A request may hold 10^5 elements; at 10 µs each they would hold the loop for a second. Counted and not timed, so that a
run on a mock clock does the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.storage.log.flush import FlushJob

T = TypeVar("T")

ELEMENTS_BETWEEN_CHECKPOINTS = 200


class YieldBudget:
    """One for a whole request: `await budget.spend()` once an element, however deep it lies."""

    __slots__ = ("_elements",)

    def __init__(self) -> None:
        self._elements = 0

    async def spend(self, *, is_long: bool = False) -> None:
        """A checkpoint after so many elements or one that `is_long` by itself, and nothing otherwise."""
        if self.is_spent() or is_long:
            await trio.lowlevel.checkpoint()

    def is_spent(self) -> bool:
        """Count an element; whether a checkpoint is due. For paths on which even an `await` of nothing costs."""
        self._elements += 1
        return self._elements % ELEMENTS_BETWEEN_CHECKPOINTS == 0


async def pause_after(elements: int) -> None:
    """A checkpoint after a step that went over so many elements at once, if they were many."""
    if elements >= ELEMENTS_BETWEEN_CHECKPOINTS:
        await trio.lowlevel.checkpoint()


async def in_thread(function: Callable[[], T], limiter: trio.CapacityLimiter) -> T:
    """`function` in a thread, its KafkaErrors without their tracebacks.

    A traceback keeps the frames it went through, here megabytes of somebody's bomb, and an error that has passed from
    thread to thread is part of a cycle: it would stay until a collection that is long in coming.
    """

    results: list[T] = []
    failures: list[KafkaError] = []

    def guarded() -> None:
        try:
            results.append(function())
        except KafkaError as error:
            error.__context__ = error.__cause__ = None
            failures.append(error.with_traceback(None))

    await trio.to_thread.run_sync(guarded, limiter=limiter)
    # Taken out, so that neither this frame nor what trio remembers of the call holds them any longer.
    if failures:
        raise failures.pop()
    return results.pop()


async def run_flush(job: FlushJob) -> None:
    """A flush job from end to end, cancelled or not: what it took over is dirty nowhere else.

    Raises LogDirError, KAFKA_STORAGE_ERROR.
    """
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(job.run)
    job.complete()
