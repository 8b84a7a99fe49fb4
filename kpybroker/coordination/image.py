"""The znode tree in memory, as ZooKeeper's DataTree and PrepRequestProcessor keep it: nodes, and what a write does.

Rules:

* a write is applied as a whole, or raises a `TreeError` and changes nothing (a `Multi` undoes its parts);
* a write reports the nodes it changed (their rows must be saved) and the watches it triggers; it does neither;
* the zxid, the time and the session are arguments;
* ACLs are enforced for whom there is an `Access`: clients over the network (`server`). The broker, in its own process,
  has none and may do everything.

What it deliberately does not do: keep watches or sessions (see `embedded`), or save (see `database`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol

from kpybroker.core import tree as t
from kpybroker.core.topic_partition import KEPT_MAX, shared
from kpybroker.core.tree import Acl, Stat, WatchType, parent_path

SHARED_BYTES_MAX: Final = 128
"""Of data that many nodes may have in common: the states of partitions, for one."""
NO_CHILDREN: Final[Mapping[str, None]] = MappingProxyType({})
"""Of most nodes; a dict of its own costs 64 bytes."""


class Access(Protocol):
    """Who asks, and what that client may do."""

    def require(self, acl: tuple[Acl, ...], permissions: int, path: str) -> None:
        """Raise `NoAuth` if the ACL gives this client none of `permissions`."""

    def complete(self, acl: tuple[Acl, ...], path: str) -> tuple[Acl, ...]:
        """The ACL to keep for one that was sent. Raises `InvalidAcl`."""


class Node:
    """A node; `creates` is the number of children ever created in it, and numbers the sequential ones."""

    __slots__ = (
        "acl",
        "aversion",
        "children",
        "creates",
        "ctime",
        "czxid",
        "data",
        "ephemeral_owner",
        "mtime",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, data: bytes | None, acl: tuple[Acl, ...], zxid: int, now_ms: int, ephemeral_owner: int) -> None:
        self.data = _kept(data)
        self.acl = acl
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime = self.mtime = now_ms
        self.version = self.creates = self.aversion = 0
        self.ephemeral_owner = ephemeral_owner
        self.children: Mapping[str, None] = NO_CHILDREN

    def add_child(self, name: str) -> None:
        """A node of this name is in this one."""
        name = sys.intern(name)  # each topic has the partitions "0", "1" and so on
        if isinstance(self.children, dict):
            self.children[name] = None
        else:
            self.children = {**self.children, name: None} if self.children else _only(name)

    def remove_child(self, name: str) -> None:
        """It is not any more. Raises KeyError where there is none of this name."""
        if isinstance(self.children, dict):
            del self.children[name]
        elif name in self.children:
            self.children = NO_CHILDREN
        else:
            raise KeyError(name)

    def stat(self) -> Stat:
        """The node's Stat, as ZooKeeper returns it."""
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            # ZooKeeper keeps the number of creations and shows creations + deletions (DataNode.copyStat).
            self.creates * 2 - len(self.children),
            self.aversion,
            self.ephemeral_owner,
            len(self.data or b""),
            len(self.children),
            self.pzxid,
        )


@lru_cache(maxsize=KEPT_MAX)
def _only(name: str) -> Mapping[str, None]:
    """The children of a node that has just this one: the nodes of all partitions have one called `state`."""
    return MappingProxyType({name: None})


def _kept(data: bytes | None) -> bytes | None:
    return shared(data) if data is not None and len(data) <= SHARED_BYTES_MAX else data


@dataclass(slots=True)
class Change:
    """What one write did: its result, the nodes it changed, the watches it triggers, in order, each with the ACL of
    the node that it is about. `parts` are the results of a `Multi` with the stats of created nodes.
    """

    session_id: int
    zxid: int
    now_ms: int
    access: Access | None = None
    result: t.Result = None
    parts: tuple[t.PartResult, ...] = ()
    touched: dict[str, None] = field(default_factory=dict)
    triggers: list[tuple[WatchType, str, tuple[Acl, ...]]] = field(default_factory=list)
    undo: list[Callable[[], None]] = field(default_factory=list)


class Image:
    """All nodes by path. `owners` has the ephemeral nodes of each session that has any, `containers` the containers."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", t.OPEN_ACL_UNSAFE, 0, 0, 0)}
        self.owners: dict[int, dict[str, None]] = {}
        self.containers: dict[str, None] = {}

    def add(self, path: str, node: Node) -> None:
        """Add a node as it was saved, parents first. Raises KeyError when the parent is missing."""
        if path != "/":
            self.nodes[parent_path(path)].add_child(path[path.rindex("/") + 1 :])
            self._own(path, node)
        self.nodes[path] = node

    def read(self, op: t.ReadOperation, access: Access | None = None) -> t.Result:
        """Perform a read. Raises TreeError."""
        t.check_path(op.path)
        node = self.nodes.get(op.path)
        if node is None:
            if isinstance(op, t.Exists):
                return None
            raise t.NoNode(op.path)
        if access is not None:
            access.require(node.acl, t.READ | t.ADMIN if isinstance(op, t.GetAcl) else t.READ, op.path)
        match op:
            case t.Get():
                return t.NodeData(node.data, node.stat())
            case t.Exists():
                return node.stat()
            case t.Children():
                return t.NodeChildren(tuple(node.children), node.stat())
            case t.GetAcl():
                return t.NodeAcl(node.acl, node.stat())

    def write(
        self, op: t.WriteOperation, session_id: int, zxid: int, now_ms: int, access: Access | None = None
    ) -> Change:
        """Apply a write under `zxid`, as a whole or not at all. Raises TreeError."""
        change = Change(session_id, zxid, now_ms, access)
        if isinstance(op, t.Multi):
            self._multi(op, change)
        else:
            change.result = self._part(op, change)
        return change

    def end_session(self, session_id: int, zxid: int, now_ms: int) -> Change:
        """Delete the session's ephemeral nodes, all under one zxid as ZooKeeper's closeSession does."""
        change = Change(session_id, zxid, now_ms)
        for path in list(self.owners.get(session_id, ())):
            self._delete(t.Delete(path), change)
        return change

    def _multi(self, op: t.Multi, change: Change) -> None:
        results: list[t.PartResult] = []
        for index, part in enumerate(op.ops):
            try:
                result = self._part(part, change)
            except t.TreeError as error:
                for step in reversed(change.undo):
                    step()
                before = tuple(t.RolledBack(other.path) for other in op.ops[:index])
                after = tuple(t.RuntimeInconsistency(other.path) for other in op.ops[index + 1 :])
                raise t.MultiFailed((*before, error, *after)) from None
            results.append(result)
        change.parts = tuple(results)
        change.result = tuple(t.Created(r.path, None) if isinstance(r, t.Created) else r for r in results)

    def _part(self, op: t.Create | t.SetData | t.Delete | t.Check | t.SetAcl, change: Change) -> t.PartResult:
        match op:
            case t.Create():
                return self._create(op, change)
            case t.SetData():
                return self._set_data(op, change)
            case t.Delete():
                self._delete(op, change)
                return None
            case t.Check():
                node = self._node(op.path)
                _require(change, node.acl, t.READ, op.path)
                _expect_version(node.version, op.version, op.path)
                return None
            case t.SetAcl():
                return self._set_acl(op, change)

    def _node(self, path: str) -> Node:
        t.check_path(path)
        try:
            return self.nodes[path]
        except KeyError:
            raise t.NoNode(path) from None

    def _create(self, op: t.Create, change: Change) -> t.Created:
        # the prefix of a sequential name may be empty
        t.check_path(f"{op.path}0" if op.sequential else op.path)
        if op.path == "/" and not op.sequential:
            raise t.NodeExists(op.path)
        acl = _completed(change, t.OPEN_ACL_UNSAFE if op.acl is None else op.acl, op.path)
        parent = self.nodes.get(parent_path(op.path))
        if parent is None:
            raise t.NoNode(op.path)
        _require(change, parent.acl, t.CREATE, op.path)
        path = f"{op.path}{parent.creates:010d}" if op.sequential else op.path
        if path in self.nodes:
            raise t.NodeExists(op.path)
        if parent.ephemeral_owner not in (0, t.CONTAINER_OWNER):
            raise t.NoChildrenForEphemerals(op.path)
        owner = t.CONTAINER_OWNER if op.container else change.session_id if op.ephemeral else 0
        node = Node(op.data, acl, change.zxid, change.now_ms, owner)
        self._link(path, node, change)
        change.triggers.append((WatchType.NODE_CREATED, path, acl))
        change.triggers.append((WatchType.NODE_CHILDREN_CHANGED, parent_path(path), parent.acl))
        return t.Created(path, node.stat())

    def _link(self, path: str, node: Node, change: Change) -> None:
        parent, name = self.nodes[parent_path(path)], path[path.rindex("/") + 1 :]
        pzxid_before = parent.pzxid
        self.nodes[path] = node
        parent.add_child(name)
        parent.creates += 1
        parent.pzxid = change.zxid
        self._own(path, node)

        def undo() -> None:
            del self.nodes[path]
            parent.remove_child(name)
            parent.creates -= 1
            parent.pzxid = pzxid_before
            self._disown(path, node)

        change.undo.append(undo)
        change.touched[path] = change.touched[parent_path(path)] = None

    def _delete(self, op: t.Delete, change: Change) -> None:
        if op.path == "/":
            raise t.BadArguments(op.path, "the root cannot be deleted")
        t.check_path(op.path)
        parent, name = self.nodes.get(parent_path(op.path)), op.path[op.path.rindex("/") + 1 :]
        if parent is None:
            raise t.NoNode(op.path)
        _require(change, parent.acl, t.DELETE, op.path)
        node = self._node(op.path)
        _expect_version(node.version, op.version, op.path)
        if node.children:
            raise t.NotEmpty(op.path)
        pzxid_before = parent.pzxid
        del self.nodes[op.path]
        parent.remove_child(name)
        parent.pzxid = change.zxid
        self._disown(op.path, node)

        def undo() -> None:
            self.add(op.path, node)
            parent.pzxid = pzxid_before

        change.undo.append(undo)
        change.touched[op.path] = change.touched[parent_path(op.path)] = None
        change.triggers.append((WatchType.NODE_DELETED, op.path, node.acl))
        change.triggers.append((WatchType.NODE_CHILDREN_CHANGED, parent_path(op.path), parent.acl))

    def _own(self, path: str, node: Node) -> None:
        if node.ephemeral_owner == t.CONTAINER_OWNER:
            self.containers[path] = None
        elif node.ephemeral_owner:
            self.owners.setdefault(node.ephemeral_owner, {})[path] = None

    def _disown(self, path: str, node: Node) -> None:
        if node.ephemeral_owner == t.CONTAINER_OWNER:
            del self.containers[path]
        elif node.ephemeral_owner:
            owned = self.owners[node.ephemeral_owner]
            del owned[path]
            if not owned:
                del self.owners[node.ephemeral_owner]

    def _set_data(self, op: t.SetData, change: Change) -> Stat:
        node = self._node(op.path)
        _require(change, node.acl, t.WRITE, op.path)
        _expect_version(node.version, op.version, op.path)
        before = (node.data, node.mzxid, node.mtime, node.version)
        node.data, node.mzxid, node.mtime, node.version = (
            _kept(op.data),
            change.zxid,
            change.now_ms,
            node.version + 1,
        )

        def undo() -> None:
            node.data, node.mzxid, node.mtime, node.version = before

        change.undo.append(undo)
        change.touched[op.path] = None
        change.triggers.append((WatchType.NODE_DATA_CHANGED, op.path, node.acl))
        return node.stat()

    def _set_acl(self, op: t.SetAcl, change: Change) -> Stat:
        t.check_path(op.path)
        acl = _completed(change, op.acl, op.path)
        node = self._node(op.path)
        _require(change, node.acl, t.ADMIN, op.path)
        _expect_version(node.aversion, op.version, op.path)
        node.acl, node.aversion = acl, node.aversion + 1
        change.touched[op.path] = None
        return node.stat()


def _require(change: Change, acl: tuple[Acl, ...], permissions: int, path: str) -> None:
    if change.access is not None:
        change.access.require(acl, permissions, path)


def _completed(change: Change, acl: tuple[Acl, ...], path: str) -> tuple[Acl, ...]:
    if not acl:
        raise t.InvalidAcl(path)
    return acl if change.access is None else change.access.complete(acl, path)


def _expect_version(actual: int, expected: int, path: str) -> None:
    if expected not in (t.ANY_VERSION, actual):
        raise t.BadVersion(path, f"version {actual} where {expected} was expected")


class Watches:
    """The watches of all sessions. One fires once; a session has at most one for a path and kind."""

    def __init__(self) -> None:
        self._data: dict[str, dict[int, None]] = {}
        self._children: dict[str, dict[int, None]] = {}

    def register(self, op: t.Get | t.Exists | t.Children, session_id: int) -> None:
        """Set the watch that a read asks for."""
        table = self._children if isinstance(op, t.Children) else self._data
        table.setdefault(op.path, {})[session_id] = None

    def fire(self, kind: WatchType, path: str) -> Iterator[int]:
        """The sessions that get the event, each once; removes their watches (WatchManager.triggerWatch)."""
        sessions: dict[int, None] = {}
        if kind is not WatchType.NODE_CHILDREN_CHANGED:
            sessions.update(self._data.pop(path, {}))
        if kind in (WatchType.NODE_CHILDREN_CHANGED, WatchType.NODE_DELETED):
            sessions.update(self._children.pop(path, {}))
        return iter(sessions)

    def forget(self, session_id: int) -> None:
        """Drop all watches of a session that has ended."""
        for table in (self._data, self._children):
            for path in [path for path, sessions in table.items() if session_id in sessions]:
                del table[path][session_id]
                if not table[path]:
                    del table[path]
