"""Garbage collection of the process, tuned for a broker that has it to itself.

These settings are of the whole interpreter, so only the command line makes them: a broker inside a Python program
leaves the program's garbage alone.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (5_000, 3, 1_000_000)
"""A young collection looks at 20,000 objects at most: it blocks the loop for 10 ms where ten times as many take 70. No
full collection starts by itself, for the same reason."""
INTERVAL_S: Final = 60.0
YOUNG_COLLECTIONS_MIN: Final = 100


def freeze() -> None:
    """Leave what exists now out of later collections: after the start that is code and the broker itself."""
    gc.freeze()


async def collect() -> None:
    """Full collections of cycles, not during a request, and only after many objects survived young collections.

    A full collection blocks the loop for as long as it takes to visit every container. Survivors are frozen, so the
    next one does not visit them: they are freed by their reference counts, unless they become part of a cycle.
    """
    import trio

    gc.set_threshold(*THRESHOLDS)
    while True:
        await trio.sleep(INTERVAL_S)
        if gc.get_count()[2] >= YOUNG_COLLECTIONS_MIN:
            gc.collect()
            freeze()
