"""Notifications in the tree: sequential nodes below one path, each of which names what has changed.

Kafka's `ZkNodeChangeNotificationListener`. Every broker watches the path and handles each notification once, in order.
A broker that sees a notification older than `AGE_MAX_MS` removes it. After a session that expired, notifications may
have been missed: then everything is read again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kpybroker.coordination.tree import create_recursive, retry_until_connected
from kpybroker.coordination.watch_loop import WatchLoop
from kpybroker.core import tree as t

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host

logger = logging.getLogger("kafka.common.ZkNodeChangeNotificationListener")

AGE_MAX_MS: Final = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Subject:
    """What notifications are about.

    `changed(data)` handles one of them; it raises ValueError for data that it cannot read. `reload()` reads everything.
    """

    path: str
    prefix: str
    changed: Callable[[bytes | None], Awaitable[None]]
    reload: Callable[[], Awaitable[None]]


class Notifications:
    """Life: `start` once the tree is open, then until the broker stops."""

    def __init__(self, host: Host, subject: Subject) -> None:
        self._host = host
        self._subject = subject
        self._last = -1
        self._generation = 0
        self._changes = WatchLoop(subject.path, self.process_pending, logger)

    async def start(self) -> None:
        """Watch first, then read everything: what changes in between is read again. Raises TreeError."""
        host, path = self._host, self._subject.path
        host.on_tree_event(self._changes.on_tree_event)
        await create_recursive(host.tree, path, fail_if_exists=False)
        self._generation = host.tree.generation
        self._last = max(map(self._sequence, await self._pending()), default=-1)
        await self._subject.reload()
        host.spawn(f"{path}-event-process-thread", self._changes.run)

    async def process_pending(self) -> None:
        """Handle the notifications since the last call, oldest first, and remove outdated ones."""
        generation = self._host.tree.generation
        names = await self._pending()
        if generation != self._generation:
            self._last = max(map(self._sequence, names), default=self._last)
            await self._subject.reload()
            self._generation = generation
        new = [name for name in names if self._sequence(name) > self._last]
        found = await submit(self._host, [t.Get(self._child(name)) for name in new])
        for name, node in zip(new, found, strict=True):
            if isinstance(node, t.NodeData):
                await self._handle(name, node.data)
            self._last = self._sequence(name)
        await self._purge(names)

    async def _handle(self, name: str, data: bytes | None) -> None:
        try:
            await self._subject.changed(data)
        except ValueError as error:
            logger.error("Notification %s cannot be read and is ignored: %s", self._child(name), error)

    async def _pending(self) -> list[str]:
        (listed,) = await submit(self._host, [t.Children(self._subject.path, watch=True)])
        return sorted(listed.names, key=self._sequence) if isinstance(listed, t.NodeChildren) else []

    async def _purge(self, names: Sequence[str]) -> None:
        paths = [self._child(name) for name in names]
        oldest_ms = self._host.clock.time_ms() - AGE_MAX_MS
        stats = await submit(self._host, [t.Exists(path) for path in paths])
        outdated = [
            path for path, stat in zip(paths, stats, strict=True) if isinstance(stat, t.Stat) and stat.ctime < oldest_ms
        ]
        await submit(self._host, [t.Delete(path) for path in outdated])

    def _child(self, name: str) -> str:
        return f"{self._subject.path}/{name}"

    def _sequence(self, name: str) -> int:
        digits = name.removeprefix(self._subject.prefix)
        return int(digits) if digits.isdigit() else -1


async def submit(host: Host, ops: Sequence[t.Operation]) -> list[t.Result | t.NoNode]:
    """Perform all; a missing node is a result, any other failure is raised."""
    results: list[t.Result | t.NoNode] = []
    for result in await retry_until_connected(host.tree, ops):
        if isinstance(result, t.TreeError) and not isinstance(result, t.NoNode):
            raise result
        results.append(result)
    return results
