"""The watches of all connections (DataTree, WatchManager): by path, and for each path the connections that watch it.

A watch belongs to the connection, not to the session: a client that connects again sets its watches again. One-shot
watches, of data or of children, and those that stay, of a node or of all below it, are independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from kpybroker.coordination.server.requests import WatcherType
from kpybroker.core.tree import WatchType, parent_path

W = TypeVar("W")

_Table = dict[str, dict[W, None]]


class Watches(Generic[W]):
    """`W` is what watches: a connection."""

    def __init__(self) -> None:
        self._data: _Table[W] = {}
        self._children: _Table[W] = {}
        self._persistent: _Table[W] = {}
        self._recursive: _Table[W] = {}
        self._of: dict[W, dict[tuple[int, str], None]] = {}
        self._tables = (self._data, self._children, self._persistent, self._recursive)

    def watch_data(self, path: str, watcher: W) -> None:
        """Until the node is created, changed or deleted."""
        self._add(0, path, watcher)

    def watch_children(self, path: str, watcher: W) -> None:
        """Until a child is created or deleted, or the node is deleted."""
        self._add(1, path, watcher)

    def watch_always(self, path: str, watcher: W, *, is_recursive: bool) -> None:
        """Until it is removed. A recursive one is of all nodes below, but gets no events of children."""
        self._add(3 if is_recursive else 2, path, watcher)

    def count(self, watcher: W) -> int:
        """How many watches one connection has."""
        return len(self._of.get(watcher, ()))

    def paths(self, watcher: W) -> Iterator[str]:
        """The paths that one connection watches; some more than once."""
        return (path for _, path in self._of.get(watcher, ()))

    @property
    def watched_paths(self) -> int:
        """How many paths are watched."""
        return len({path for table in self._tables for path in table})

    @property
    def watchers(self) -> int:
        """How many connections have watches."""
        return len(self._of)

    @property
    def total(self) -> int:
        """How many watches there are."""
        return sum(map(len, self._of.values()))

    def fire(self, kind: WatchType, path: str) -> Iterable[W]:
        """The connections that get the event, each once; removes one-shot watches (WatchManager.triggerWatch)."""
        found: dict[W, None] = {}
        if kind is not WatchType.NODE_CHILDREN_CHANGED:
            found.update(self._pop(0, path))
            self._above(path, found)
        if kind in (WatchType.NODE_CHILDREN_CHANGED, WatchType.NODE_DELETED):
            found.update(self._pop(1, path))
        found.update(self._persistent.get(path, {}))
        return found

    def remove(self, path: str, kind: WatcherType, watcher: W, *, keeps: bool = False) -> bool:
        """Remove the watches of a connection and path; True if there were any. `keeps`: only look."""
        numbers = {WatcherType.DATA: (0, 2, 3), WatcherType.CHILDREN: (1, 2, 3), WatcherType.ANY: (0, 1, 2, 3)}[kind]
        found = [number for number in numbers if watcher in self._tables[number].get(path, {})]
        if not keeps:
            for number in found:
                self._drop(number, path, watcher)
        return bool(found)

    def forget(self, watcher: W) -> None:
        """Remove all watches of a connection that has ended."""
        for number, path in list(self._of.get(watcher, ())):
            self._drop(number, path, watcher)

    def _add(self, number: int, path: str, watcher: W) -> None:
        self._tables[number].setdefault(path, {})[watcher] = None
        self._of.setdefault(watcher, {})[number, path] = None

    def _pop(self, number: int, path: str) -> dict[W, None]:
        watchers = dict(self._tables[number].get(path, {}))
        for watcher in watchers:
            self._drop(number, path, watcher)
        return watchers

    def _above(self, path: str, found: dict[W, None]) -> None:
        while self._recursive:
            found.update(self._recursive.get(path, {}))
            if path == "/":
                return
            path = parent_path(path)

    def _drop(self, number: int, path: str, watcher: W) -> None:
        table, of_watcher = self._tables[number], self._of[watcher]
        del table[path][watcher], of_watcher[number, path]
        if not table[path]:
            del table[path]
        if not of_watcher:
            del self._of[watcher]
