"""One task that looks at a watched node again whenever it may have changed.

An event says only that there is something to read, so any number of them before the next look are one. Watches end
with their session: after a new one the node is looked at again. The watch itself is set by the read in `look`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from kpybroker.core.tree import ConnectionLoss, SessionEvent, SessionExpired, SessionState, TreeEvent


class WatchLoop:
    """Pass `on_tree_event` to the tree, and `run` to a task. `name` is what the log says could not be read."""

    def __init__(
        self, path: str, look: Callable[[], Awaitable[None]], logger: logging.Logger, name: str | None = None
    ) -> None:
        self._path = path
        self._look = look
        self._logger = logger
        self._name = name or path
        self._wake = trio.Event()

    def on_tree_event(self, event: TreeEvent) -> None:
        """An event of the node, or a new session, is a reason to look."""
        if isinstance(event, SessionEvent):
            is_relevant = event.type is SessionState.CONNECTED
        else:
            is_relevant = event.path == self._path
        if is_relevant:
            self._wake.set()

    async def run(self) -> None:
        """Forever: look after each event. A lost connection is logged; whatever else `look` raises ends it."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            try:
                await self._look()
            except (SessionExpired, ConnectionLoss) as error:
                self._logger.warning("Cannot read %s until there is a new session: %r", self._name, error)
