"""What one client knows of its own watches: set by an answer, gone with the event they fire.

Kept on the client's side, as ZooKeeper's ZKWatchManager, because a server may forget (a broken connection) or
tell twice.
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
        """Note the watch that `op` has set, if it asked for one and `result` says it stands."""
        match op, result:
            case t.Get(watch=True), t.NodeData():
                self.data[op.path] = result.stat
            case t.Exists(watch=True), Stat() | None:
                self.data[op.path] = result
            case t.Children(watch=True), t.NodeChildren():
                self.children[op.path] = result.stat

    def stands(self, kind: WatchType, path: str) -> bool:
        """True if such an event would fire a watch."""
        by_data = kind is not WatchType.NODE_CHILDREN_CHANGED and path in self.data
        return by_data or (kind in _FIRES_CHILDREN and path in self.children)

    def take(self, kind: WatchType, path: str) -> bool:
        """Remove the watches that such an event fires; False if there was none, and nobody is to be told."""
        stood = self.stands(kind, path)
        if kind is not WatchType.NODE_CHILDREN_CHANGED:
            self.data.pop(path, None)
        if kind in _FIRES_CHILDREN:
            self.children.pop(path, None)
        return stood

    def clear(self) -> None:
        self.data.clear()
        self.children.clear()
