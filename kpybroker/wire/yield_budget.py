"""How long work goes on before others run: one budget for everything that loops over many elements.

A request may hold 10^5 elements; at 10 µs each they would hold the loop for a second. So a long loop counts what it
does, in units of about 2 µs, and lets others run after each slice of `SLICE_UNITS` (about 2 ms).

Rules. Work is counted and not timed, so that a run on a mock clock repeats exactly. One budget covers one request or
task, however deep its loops are nested.

Not here: the way to let others run. Code below the event loop is a generator that yields once its budget is spent,
and the code that runs it makes that a checkpoint. Code on the loop takes `kpybroker.broker.loop.yielding.YieldBudget`.
"""

from __future__ import annotations

SLICE_UNITS = 1000
"""Work between two checkpoints. Also the cost of work that takes a whole slice by itself, such as creating a log."""

ELEMENT = 5
"""What one element of a request, one partition or one record costs where its caller does not know better."""


class WorkBudget:
    """Counts the work of one request or task in units of about 2 µs."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = SLICE_UNITS

    def is_spent(self, cost: int = ELEMENT) -> bool:
        """Count `cost` units of work. True, and a new slice begins, when others must run now."""
        self._left -= cost
        if self._left > 0:
            return False
        self._left = SLICE_UNITS
        return True
