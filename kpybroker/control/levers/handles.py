"""Levers that stay until they are removed, in the one space of ids of all faults (`control.requests.handles`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kpybroker.control.requests.faults import FaultRules
from kpybroker.control.requests.handles import Handles, Hits

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted


class LeverHandle:
    """`described` is what it does, as JSON; `undo` lets it go and may be called more than once."""

    def __init__(self, handle_id: int, described: Mapping[str, Any], undo: Callable[[], None]) -> None:
        self.id = handle_id
        self.hits = Hits()
        self.can_hold = False
        self._described = described
        self._undo = undo

    def described(self) -> Mapping[str, Any]:
        """As `Handle.described`."""
        return {"id": self.id, **self._described, "hits": self.hits.count}

    def release(self, *, again: bool) -> int:
        """As `Handle.release`: there is nothing that it could let go on and hold again."""
        return 0

    def remove(self) -> None:
        """As `Handle.remove`."""
        self._undo()


def handles_of(hosted: Hosted) -> Handles:
    """All faults of the process by id."""
    return hosted.part(FaultRules).handles


def keep(hosted: Hosted, described: Mapping[str, Any], undo: Callable[[], None]) -> LeverHandle:
    """A new handle, which `remove_fault` and `reset` remove."""
    handles = handles_of(hosted)
    handle = LeverHandle(handles.next_id(), described, undo)
    handles.add(handle.id, handle)
    return handle
