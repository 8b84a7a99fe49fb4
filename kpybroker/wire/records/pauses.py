"""Where work that goes through a batch record by record may pause: the hook of the code that runs it in a thread.

Such work is a plain function, and its loop over records is the only place where it can stop. The loop counts with
`pausing`, which calls what `PAUSE` has every `RECORDS_A_PAUSE` records. What that does, to wait for its turn or to
raise because its client has left, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final

RECORDS_A_PAUSE: Final = 2048
"""About 2 to 6 ms of work."""

PAUSE: ContextVar[Callable[[], None] | None] = ContextVar("kpybroker.pause", default=None)
"""Of the work that runs in this thread; None where it must go on, as on the loop."""


def pausing(count: int) -> range | Iterator[int]:
    """`range(count)`, with a call of the present `PAUSE` before the first number and every `RECORDS_A_PAUSE`."""
    pause = PAUSE.get()
    return range(count) if pause is None else _with_pauses(count, pause)


def _with_pauses(count: int, pause: Callable[[], None]) -> Iterator[int]:
    for start in range(0, count, RECORDS_A_PAUSE):
        pause()
        yield from range(start, min(start + RECORDS_A_PAUSE, count))
