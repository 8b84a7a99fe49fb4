"""How much memory the state that clients build may take: by owner, and in all.

State is what outlives the request that made it: fetch sessions, members of groups with what they support, committed
offsets, transactional ids. Who adds to it asks `has_room` first, and refuses the request where there is none; then it
reports every change with `add`. Sizes are estimates in bytes, never below what Python's objects take.

An owner is a principal that has logged in, or an address where no one has. What was in a log before this broker read
it has no owner (`UNOWNED`): it is never refused, and does not count.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, NamedTuple


class Owner(NamedTuple):
    """Who is charged: a principal, or an address; the other one is empty."""

    principal: str = ""
    address: str = ""

    def __str__(self) -> str:
        return self.principal or self.address


UNOWNED: Final = Owner()


class StateLimits(NamedTuple):
    """Bytes for all owners together, for an address, and for a principal."""

    total: int = sys.maxsize
    address: int = sys.maxsize
    principal: int = sys.maxsize


UNLIMITED: Final = StateLimits()


def _ignore(owner: Owner, size: int) -> None:
    """No one wants to know of refusals."""


class StateBudget:
    """`total` is what all owners hold now. `on_refused` is called with who asked, and for how many bytes."""

    __slots__ = ("_held", "_limits", "_on_refused", "total")

    def __init__(self, limits: StateLimits = UNLIMITED, on_refused: Callable[[Owner, int], None] = _ignore) -> None:
        self._limits = limits
        self._on_refused = on_refused
        self._held: dict[Owner, int] = {}
        self.total = 0

    def held(self, owner: Owner) -> int:
        """Bytes that one owner holds."""
        return self._held.get(owner, 0)

    def has_room(self, owner: Owner, size: int) -> bool:
        """Whether `size` more bytes fit. What does not grow always fits."""
        if size <= 0 or self.would_fit(owner, size):
            return True
        self._on_refused(owner, size)
        return False

    def would_fit(self, owner: Owner, size: int) -> bool:
        """`has_room` for a caller that can make room first: nothing is reported."""
        return self.total + size <= self._limits.total and self.fits_owner(owner, size)

    def fits_owner(self, owner: Owner, size: int) -> bool:
        """Whether `size` more bytes are within what one owner may have."""
        own_max = self._limits.principal if owner.principal else self._limits.address
        return self._held.get(owner, 0) + size <= own_max

    def add(self, owner: Owner, size: int) -> None:
        """The owner's state has grown by `size` bytes, or shrunk if that is negative."""
        if not size or owner == UNOWNED:
            return
        held = self._held.get(owner, 0) + size
        assert held >= 0, f"{owner} gave back more than it had"
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        self.total += size
