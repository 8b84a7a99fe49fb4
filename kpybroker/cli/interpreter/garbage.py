"""Garbage collection of the process, and its heap, tuned for a broker that has it to itself.

These settings are of the whole interpreter, so only the command line makes them: a broker inside a Python program
leaves the program's garbage alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from kpybroker.system.processes import give_back_memory, resident_bytes

THRESHOLDS: Final = (5_000, 3, 1_000_000)
"""A young collection looks at 20,000 objects at most: it blocks the loop for 10 ms where ten times as many take 70. No
full collection starts by itself, for the same reason."""
OLD_PARTS: Final = 10
"""Python 3.14 has no full collections: each young one visits a part of the older objects too. This is its own choice;
a hundred left 250 MB of garbage where ten left none (300,000 frozen objects, 100,000 alive, cycles of 3 objects)."""
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


async def collect() -> None:
    """Full collections of cycles, not during a request, and only after many objects survived young collections.

    A full collection blocks the loop for as long as it takes to visit every container. Survivors are frozen, so the
    next one does not visit them: they are freed by their reference counts, unless they become part of a cycle.
    Returns at once on a Python that collects older objects in small parts.
    """
    import trio

    gc.set_threshold(*THRESHOLDS)
    if gc.get_threshold()[2] == 0:
        gc.set_threshold(THRESHOLDS[0], OLD_PARTS)
        return
    while True:
        await trio.sleep(INTERVAL_S)
        if gc.get_count()[2] >= YOUNG_COLLECTIONS_MIN:
            gc.collect()
            freeze()


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
