"""Faults by id: hits that can be waited for, a description, a release, a removal. Of requests, and of anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import trio


class Hits:
    """How often a fault has acted."""

    __slots__ = ("_changed", "count")

    def __init__(self) -> None:
        self.count = 0
        self._changed = trio.Event()

    def add(self) -> None:
        """It has acted once more."""
        self.count += 1
        self._changed.set()
        self._changed = trio.Event()

    async def wait(self, count: int) -> None:
        """Return once it has acted `count` times in all."""
        while self.count < count:
            await self._changed.wait()


class Handle(Protocol):
    """A fault as the methods of the control channel see it."""

    hits: Hits
    can_hold: bool
    """Whether it lets requests wait."""

    def described(self) -> Mapping[str, Any]:
        """Its rule and its state, as JSON."""

    def release(self, *, again: bool) -> int:
        """Let what it holds go on, how much that was; with `again`, it holds what arrives from now on."""

    def remove(self) -> None:
        """It acts no more, and what it holds goes on."""


class Handles:
    """All faults of a process by id, in the order in which they were added. Ids are never used again."""

    def __init__(self) -> None:
        self._by_id: dict[int, Handle] = {}
        self._last_id = 0

    def __getitem__(self, handle_id: int) -> Handle:
        """Raises KeyError."""
        return self._by_id[handle_id]

    @property
    def ids(self) -> list[int]:
        """Those that have not been removed."""
        return list(self._by_id)

    def next_id(self) -> int:
        """The id for a handle that is about to be added."""
        self._last_id += 1
        return self._last_id

    def add(self, handle_id: int, handle: Handle) -> None:
        """Keep a handle until it is removed."""
        self._by_id[handle_id] = handle

    def remove(self, handle_id: int) -> Handle:
        """Remove it, here and as a fault. Raises KeyError."""
        handle = self._by_id.pop(handle_id)
        handle.remove()
        return handle

    def clear(self) -> None:
        """Remove all."""
        for handle_id in self.ids:
            self.remove(handle_id)
