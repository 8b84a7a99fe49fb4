"""The names of the shortcuts: places where the broker is harder to read because that is faster.

`kpybroker.shortcuts` takes them; without one, requests take the plain path next to it, with the same results.
docs/internals/shortcuts.md says what each does, what it saves, and when it falls back by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

POLLER: Final = "poller"
"""One epoll serves all connections in trio's place."""
INLINE_REQUESTS: Final = "inline-requests"
"""Requests that need no waiting are answered without waking the task of their connection."""
FAST_PRODUCE: Final = "fast-produce"
"""A Produce of one batch is read and answered without making its messages."""
SENDFILE: Final = "sendfile"
"""Large slices of segments go from the page cache to the socket within the kernel."""
RECEIVE_BUFFERS: Final = "receive-buffers"
"""Large requests are received into buffers that are used again."""

ALL: Final = frozenset((POLLER, INLINE_REQUESTS, FAST_PRODUCE, SENDFILE, RECEIVE_BUFFERS))


def chosen(names: Iterable[str]) -> frozenset[str]:
    """The shortcuts that a value of `kpybroker.shortcuts` leaves on: `all`, `none`, or a list of names."""
    named = frozenset(names)
    return ALL if "all" in named else named & ALL
