"""The brokers' clock. What moves with it and what does not: `kpybroker.control.levers.movable_clock`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.control.errors import ControlError
from kpybroker.control.idle import Idle
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.control.registry import JSON, methods

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

ADVANCE_MS_MAX = 100 * 365 * 24 * 3_600_000


async def clock(hosted: Hosted) -> JSON:
    """The brokers' wall-clock time, and how far it is ahead of the machine's, in milliseconds."""
    movable = _movable(hosted)
    return {"now_ms": movable.time_ms(), "ahead_ms": movable.ahead_ms}


async def advance(hosted: Hosted, ms: int) -> JSON:
    """Move the clock forward; every timer that is due runs, in order, before this returns the new time."""
    if not 0 <= ms <= ADVANCE_MS_MAX:
        raise ControlError(f"advance: `ms` is {ms}", "give milliseconds from 0 up to a hundred years")
    await _movable(hosted).advance(ms, Idle(hosted))
    return await clock(hosted)


def _movable(hosted: Hosted) -> MovableClock:
    if not isinstance(hosted.clock, MovableClock):
        raise ControlError("these brokers run on the machine's clock", "start them with the control channel", 409)
    return hosted.clock


METHODS = methods(clock, advance)
