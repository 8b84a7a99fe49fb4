"""Letting others run: long loops over many elements, calls in threads, flushes.

A loop over what may be 10^5 elements makes one `YieldBudget` and spends from it once an element: `await budget.spend()`
in a coroutine, `yield from budget.steps()` in steps. What a slice is, is defined in `kpybroker.wire.yield_budget`.
While several requests need more than one, those of each client have their next slice in turn (`next_slice`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import trio

from kpybroker.broker.loop.poller import running_poller
from kpybroker.broker.loop.steps import Steps
from kpybroker.storage.disk.errors import failing_takes_offline
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.yield_budget import ELEMENT, SLICE_UNITS, WorkBudget

if TYPE_CHECKING:
    from kpybroker.broker.loop.slow_work import ClientsWork
    from kpybroker.storage.disk.slice import FileSlice
    from kpybroker.storage.log.flush import FlushJob

__all__ = [
    "ELEMENT",
    "SLICE_UNITS",
    "YieldBudget",
    "in_thread",
    "listed",
    "next_slice",
    "paced",
    "read_in_thread",
    "run_flush",
]

T = TypeVar("T")


TURNS_OF: ContextVar[Hashable] = ContextVar("kpybroker.turns_of", default=None)
"""The client whose request the running task serves; None where it works for all."""


async def next_slice() -> None:
    """Let others run. Work for a client goes on when it is that client's turn, other work at once."""
    client = TURNS_OF.get()
    poller = None if client is None else running_poller()
    if poller is None:
        await trio.lowlevel.checkpoint()
    else:
        await poller.next_slice(client)


class YieldBudget(WorkBudget):
    """A `WorkBudget` of code that runs on the loop; costs are in its units.

    `around` is entered while the next slice is waited for: `ConnectionInfo.may_leave` for work that has no effect.
    """

    __slots__ = ("_around",)

    def __init__(self, around: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        self._left = SLICE_UNITS
        self._around = around

    async def spend(self, cost: int = ELEMENT) -> None:
        """Count work; a checkpoint if the slice is spent, and nothing otherwise."""
        if self.is_spent(cost):
            await self.next_slice()

    def steps(self, cost: int = ELEMENT) -> Steps[None]:
        """`spend` for a generator of steps."""
        if self.is_spent(cost):
            yield next_slice if self._around is None else self.next_slice

    async def next_slice(self) -> None:
        """Let others run, as is due once `is_spent` says so."""
        if self._around is None:
            await next_slice()
        else:
            with self._around():
                await next_slice()


async def listed(elements: Iterable[T], budget: YieldBudget) -> list[T]:
    """The elements, which are made one by one, as a list; others run after each slice."""
    found: list[T] = []
    for element in elements:
        found.append(element)
        await budget.spend()
    return found


def paced(work: Generator[None, None, T]) -> Steps[T]:
    """Run a generator of a pure room (`decode_steps`, `encode_steps`) with a checkpoint at each of its yields."""
    while True:
        try:
            next(work)
        except StopIteration as finished:
            result: T = finished.value
            return result
        yield next_slice


async def in_thread(function: Callable[[], T], work: ClientsWork) -> T:
    """`function` in a thread, as slow work of a client, its KafkaErrors without their tracebacks.

    A traceback keeps the frames it went through, here megabytes of a decompression bomb. An error that has passed from
    thread to thread is part of a reference cycle: it would live until the next full garbage collection.
    """

    results: list[T] = []
    failures: list[KafkaError] = []

    def guarded() -> None:
        try:
            results.append(function())
        except KafkaError as error:
            error.__context__ = error.__cause__ = None
            failures.append(error.with_traceback(None))

    await work.run(guarded)
    # Removed from the lists, so that neither this frame nor what trio remembers of the call keeps them alive.
    if failures:
        raise failures.pop()
    return results.pop()


async def run_flush(job: FlushJob) -> None:
    """Run a flush job to its end, even when cancelled: nothing else knows that its files are dirty.

    Raises LogDirError, KAFKA_STORAGE_ERROR.
    """
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(job.run)
    job.complete()


async def read_in_thread(log_dir: str, found: FileSlice) -> bytes:
    """The bytes of a slice of a log in `log_dir`, which is released. Raises LogDirError."""
    with failing_takes_offline(log_dir):
        try:
            return await trio.to_thread.run_sync(found.read)
        finally:
            found.release()
