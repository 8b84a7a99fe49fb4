"""The watches that one client has: set by a response, removed by the event that fires them.

The client keeps them itself, as ZooKeeper's ZKWatchManager does, because a server loses them with a connection and may
send an event twice.
"""

from __future__ import annotations

from kpybroker.core import tree as t
from kpybroker.core.tree import Stat, WatchType

_FIRES_CHILDREN = (WatchType.NODE_CHILDREN_CHANGED, WatchType.NODE_DELETED)


class ClientWatches:
    """By path: the stat that the caller saw when it set the watch; None for a node that was missing."""

    def __init__(self) -> None:
        self.data: dict[str, Stat | None] = {}
        self.children: dict[str, Stat] = {}

    def keep(self, op: t.Operation, result: t.Result | t.TreeError) -> None:
        """Note the watch that `op` has set, if it asked for one and `result` says that it is set."""
        match op, result:
            case t.Get(watch=True), t.NodeData():
                self.data[op.path] = result.stat
            case t.Exists(watch=True), Stat() | None:
                self.data[op.path] = result
            case t.Children(watch=True), t.NodeChildren():
                self.children[op.path] = result.stat

    def would_fire(self, kind: WatchType, path: str) -> bool:
        """Whether such an event would fire a watch."""
        by_data = kind is not WatchType.NODE_CHILDREN_CHANGED and path in self.data
        return by_data or (kind in _FIRES_CHILDREN and path in self.children)

    def take(self, kind: WatchType, path: str) -> bool:
        """Remove the watches that such an event fires; False if there is none, so that the event must be dropped."""
        fires = self.would_fire(kind, path)
        if kind is not WatchType.NODE_CHILDREN_CHANGED:
            self.data.pop(path, None)
        if kind in _FIRES_CHILDREN:
            self.children.pop(path, None)
        return fires

    def clear(self) -> None:
        """Remove all: the session has ended."""
        self.data.clear()
        self.children.clear()
