"""Garbage collection of the process, and its heap, tuned for a broker that has it to itself.

These settings are of the whole interpreter, so only the command line makes them: a broker inside a Python program
leaves the program's garbage alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from kpybroker.system import give_back_memory, resident_bytes

THRESHOLDS: Final = (5_000, 3, 1_000_000)
"""A young collection looks at 20,000 objects at most: it blocks the loop for 10 ms where ten times as many take 70. No
full collection starts by itself, for the same reason."""
INCREMENTAL_THRESHOLDS: Final = (20_000, 1_000_000)
"""The same for Python 3.14, which has no threshold of full collections: each young collection looks at a part of the
older objects as well, by default for 26 ms where 200,000 survive, with these values for 1 ms."""
INTERVAL_S: Final = 60.0
YOUNG_COLLECTIONS_MIN: Final = 100

LOOK_INTERVAL_S: Final = 10.0
GROWN_BYTES_MIN: Final = 24 * 1024 * 1024
"""A smaller heap is left alone."""
STEADY_BYTES: Final = 4 * 1024 * 1024
"""Growth between two looks that says nothing."""


def freeze() -> None:
    """Leave what exists now out of later collections: after the start that is code and the broker itself."""
    gc.freeze()


def set_thresholds() -> None:
    """Short collections only: the thresholds that this Python knows."""
    gc.set_threshold(*THRESHOLDS)
    if gc.get_threshold()[2] == 0:
        gc.set_threshold(*INCREMENTAL_THRESHOLDS)


def young_collections() -> int:
    """The collections since the start that looked at 20,000 objects, on every Python."""
    return int(gc.get_stats()[1]["collections"])


async def collect() -> None:
    """Full collections of cycles, not during a request, and only after many objects survived young collections.

    A full collection blocks the loop for as long as it takes to visit every container. Survivors are frozen, so the
    next one does not visit them: they are freed by their reference counts, unless they become part of a cycle.
    """
    import trio

    set_thresholds()
    last = young_collections()
    while True:
        await trio.sleep(INTERVAL_S)
        if young_collections() - last >= YOUNG_COLLECTIONS_MIN:
            gc.collect()
            freeze()
            last = young_collections()


async def give_back(
    resident: Callable[[], int | None] = resident_bytes, give: Callable[[], None] = give_back_memory
) -> None:
    """Return memory to the system once a crowd of clients has gone that took it.

    What is freed is in pieces all over the heap, where the C library keeps it. Looked for is a process that has grown
    since the last time, and grows no more. No collection here: of many partitions one takes a third of a second.
    """
    import trio

    base, last = resident(), 0
    while base is not None:
        await trio.sleep(LOOK_INTERVAL_S)
        now = resident() or 0
        base = min(base, now)
        if now - base >= GROWN_BYTES_MIN and now - last < STEADY_BYTES:
            await trio.to_thread.run_sync(give)  # a trim frees the interpreter, and the loop goes on
            base = now = resident() or 0
        last = now
