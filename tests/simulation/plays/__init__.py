"""Histories that are written out: where a random one would need luck, and where one was found and has to stay good.

Each is an `async def` with a `World`, in `PLAYS` by its name, and a test of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.simulation.plays.full_disk import full_disk
from tests.simulation.plays.members_vanish import members_vanish
from tests.simulation.plays.power_cuts import failed_sync, new_segment
from tests.simulation.plays.resend_after_truncation import resend_after_truncation
from tests.simulation.plays.slow_flush import slow_flush
from tests.simulation.world import World


class Play(NamedTuple):
    """`brokers`: how many there are."""

    brokers: int
    run: Callable[[World], Awaitable[None]]


PLAYS = {
    "failed-sync": Play(1, failed_sync),
    "full-disk": Play(3, full_disk),
    "members-vanish": Play(1, members_vanish),
    "new-segment": Play(1, new_segment),
    "resend-after-truncation": Play(3, resend_after_truncation),
    "slow-flush": Play(3, slow_flush),
}
