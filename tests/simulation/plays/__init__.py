"""Histories that are written out: where a random one would need luck, and where one was found and has to stay good.

Each is an `async def` with a `World`, in `PLAYS` by its name, and a test of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.simulation.plays.resend_after_truncation import resend_after_truncation
from tests.simulation.world import World


class Play(NamedTuple):
    """`brokers`: how many there are."""

    brokers: int
    run: Callable[[World], Awaitable[None]]


PLAYS = {
    "resend-after-truncation": Play(3, resend_after_truncation),
}
