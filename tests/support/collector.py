"""Garbage collection that waits, for tests that count what Python does: it may call functions at any time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Nothing is collected within. Some libraries, such as hypothesis, have a function called with each collection."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
