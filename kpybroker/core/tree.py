"""The values of the znode tree: stats, operations, results, events and errors.

They have the shape of ZooKeeper's, so that code which reads and writes the tree (the controller's procedures yield
these operations) does not depend on which tree is behind them. Rules:

* an operation is a value; `kpybroker.coordination.tree.Tree` performs it;
* every error of an operation is a `TreeError`, named after ZooKeeper's code;
* `ConnectionLoss` means *the outcome is unknown*: the operation may have been applied or not. It never means "not
  applied" (KafkaZkClient retries reads, and checks the node before it retries a write);
* operations and events are named tuples, which cost the start a sixth of what frozen dataclasses do: distinguish them
  by class, never by equality. Results are not tuples, because the result of a `Multi` is one.

Not here: performing operations (`kpybroker.coordination`), and what Kafka stores in the tree (`kpybroker.wire.znodes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

ANY_VERSION = -1
"""As the expected version of `SetData`, `Delete`, `Check`: any version."""

CONTAINER_OWNER = -(1 << 63)
"""`Stat.ephemeral_owner` of a container node, which is removed some time after its last child."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper keeps about a node. `c`, `m`, `p`: created, modified (data), children last changed."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


# --- access control lists

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16  # org.apache.zookeeper.ZooDefs.Perms
ALL_PERMISSIONS = READ | WRITE | CREATE | DELETE | ADMIN


class Acl(NamedTuple):
    """One entry of a node's access control list; `permissions` is a bit field."""

    permissions: int
    scheme: str
    identity: str


OPEN_ACL_UNSAFE = (Acl(ALL_PERMISSIONS, "world", "anyone"),)
READ_ACL_UNSAFE = (Acl(READ, "world", "anyone"),)
CREATOR_ALL_ACL = (Acl(ALL_PERMISSIONS, "auth", ""),)


# --- operations


class Get(NamedTuple):
    """Data and stat -> `NodeData`. `watch` is set only if the node exists."""

    path: str
    watch: bool = False


class Exists(NamedTuple):
    """-> `Stat`, or None when the node is missing. `watch` is set in both cases."""

    path: str
    watch: bool = False


class Children(NamedTuple):
    """-> `NodeChildren`, names in no particular order. `watch` is set only if the node exists."""

    path: str
    watch: bool = False


class Create(NamedTuple):
    """-> `Created`. `sequential` appends the parent's ten-digit counter to `path`, which is then a prefix.

    Without `acl` the node is open to all. Data None is null, which Kafka distinguishes from empty. `container` is for
    clients of the embedded tree's server (`coordination.server`); it excludes `ephemeral`.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[Acl, ...] | None = None
    container: bool = False


class SetData(NamedTuple):
    """-> the node's new `Stat`."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """-> None."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """-> None; only as a part of a `Multi`."""

    path: str
    version: int


class Multi(NamedTuple):
    """All or nothing -> a tuple with one result an operation, or `MultiFailed`."""

    ops: tuple[Create | SetData | Delete | Check, ...]


class GetAcl(NamedTuple):
    """-> `NodeAcl`."""

    path: str


class SetAcl(NamedTuple):
    """-> the node's new `Stat`; `version` is compared with `Stat.aversion`."""

    path: str
    acl: tuple[Acl, ...]
    version: int = ANY_VERSION


WriteOperation = Create | SetData | Delete | Check | Multi | SetAcl
ReadOperation = Get | Exists | Children | GetAcl
Operation = ReadOperation | WriteOperation


# --- results


@dataclass(frozen=True, slots=True)
class NodeData:
    """The result of `Get`; data None is null, which differs from empty."""

    data: bytes | None
    stat: Stat


@dataclass(frozen=True, slots=True)
class NodeChildren:
    """The result of `Children`: names without the parent's path."""

    names: tuple[str, ...]
    stat: Stat


@dataclass(frozen=True, slots=True)
class Created:
    """`path` is the created node's, with the counter of a sequential one. Inside a `Multi`, `stat` is None."""

    path: str
    stat: Stat | None


@dataclass(frozen=True, slots=True)
class NodeAcl:
    """The result of `GetAcl`."""

    acl: tuple[Acl, ...]
    stat: Stat


PartResult = Created | Stat | None
Result = NodeData | NodeChildren | NodeAcl | PartResult | tuple[PartResult, ...]


# --- events


class WatchType(Enum):
    """What a watch reports, with ZooKeeper's numbers."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    """A watch has fired, and is removed. `generation` is the session's (see `SessionEvent`)."""

    type: WatchType
    path: str
    generation: int = 1


class SessionState(Enum):
    """The state of a client's session with the tree."""

    CONNECTED = "connected"
    """A connection to the tree is open (again); the session and its ephemerals are alive."""
    DISCONNECTED = "disconnected"
    """The connection is lost; the session may still be alive."""
    EXPIRED = "expired"
    """The session has ended, its ephemerals and watches are gone. This is final until `Tree.reopen`."""
    AUTH_FAILED = "auth failed"
    """The tree refused the credentials; the session cannot be used."""


class SessionEvent(NamedTuple):
    """The session's state has changed. `generation` counts this tree's sessions: 1, and one more after each expiry."""

    type: SessionState
    generation: int


TreeEvent = WatchEvent | SessionEvent


# --- errors


class TreeError(Exception):
    """An operation did not succeed. `path` is the operation's, where it has one."""

    def __init__(self, path: str = "", message: str = "") -> None:
        super().__init__(": ".join(part for part in (message, path) if part) or type(self).__name__)
        self.path = path


class NoNode(TreeError):
    """The node, or for a creation its parent, is missing."""


class NodeExists(TreeError):
    """The node to create is there already."""


class BadVersion(TreeError):
    """The node's version is not the expected one."""


class NotEmpty(TreeError):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(TreeError):
    """An ephemeral node cannot have children."""


class NoAuth(TreeError):
    """The node's ACL does not allow it."""


class InvalidAcl(TreeError):
    """An access control list is empty or not understood."""


class BadArguments(TreeError):
    """A path or an argument that the tree refuses."""


class TooLarge(TreeError):
    """The request is larger than `jute.maxbuffer`; it was not sent."""


class ConnectionLoss(TreeError):
    """The connection was lost before the response: the outcome is *unknown*."""


class SessionExpired(TreeError):
    """The session has ended. The operation was not applied after its end; it may have been applied before."""


class AuthFailed(TreeError):
    """The tree rejected the credentials; the session cannot be used."""


class TreeClosed(TreeError):
    """This client of the tree was closed, or not started. The operation was not sent."""


class SystemFailure(TreeError):
    """The tree itself failed (a system error of the server, a damaged file). The outcome is unknown."""


class RolledBack(TreeError):
    """A part of a failed `Multi` that succeeded, and was undone because a later part failed."""


class RuntimeInconsistency(TreeError):
    """A part of a failed `Multi` that was not tried, because an earlier part failed."""


class MultiFailed(TreeError):
    """A `Multi` was not applied. `errors` has one a part; `index` and `error` are those of the part that failed."""

    def __init__(self, errors: tuple[TreeError, ...]) -> None:
        self.errors = errors
        self.index = next(i for i, e in enumerate(errors) if not isinstance(e, RolledBack))
        self.error = errors[self.index]
        super().__init__(self.error.path, f"part {self.index} of a multi failed with {type(self.error).__name__}")


# --- paths


def parent_path(path: str) -> str:
    """`/a/b` -> `/a`, `/a` -> `/`."""
    return path[: path.rindex("/")] or "/"


def path_of(op: Operation) -> str:
    """The path an operation is about; "" for a `Multi`."""
    return "" if isinstance(op, Multi) else op.path


def check_path(path: str) -> None:
    """Raise `BadArguments` for what ZooKeeper's PathUtils.validatePath refuses."""
    if path == "/":
        return
    if not path.startswith("/") or path.endswith("/"):
        raise BadArguments(path, "a path must begin with / and must not end with it")
    for name in path[1:].split("/"):
        if name in ("", ".", ".."):
            raise BadArguments(path, "an empty or relative name in a path")
    for character in path:
        if (
            character <= "\x1f"
            or "\x7f" <= character <= "\x9f"
            or "\ud800" <= character <= "\uf8ff"
            or character >= "\ufff0"  # beyond the BMP too: two surrogates in Java
        ):
            raise BadArguments(path, "a character that a path may not hold")
