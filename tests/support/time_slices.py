"""How often other tasks run while something works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def counted_time_slices() -> AsyncIterator[Callable[[], int]]:
    """Yields what returns how often another task has run since the block began."""
    count = 0

    async def run() -> None:
        nonlocal count
        while True:
            count += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        yield lambda: count
        nursery.cancel_scope.cancel()
