"""The values of the znode tree: stats, operations, results, events and errors.

They are shaped as ZooKeeper's own, so that the machines which read and write the tree (the controller's
procedures yield these operations) need not know which tree answers. Rules:

* an operation is a value; who performs it is `kpybroker.coordination.tree.Tree`;
* every error an operation can end with is a `TreeError`; the name says which of ZooKeeper's codes it is;
* `ConnectionLoss` means *the outcome is unknown*: the operation may have been applied or not. It is never to
  be read as "not applied" (KafkaZkClient retries reads, and checks what it finds before it retries a write).
* operations and events are named tuples, which cost the start a sixth of what frozen dataclasses do: tell them apart by
  their class, never by equality. Results are no tuples, because the result of a `Multi` is one.

Nothing here performs anything, and nothing here knows what Kafka keeps in the tree (see
`kpybroker.wire.znodes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

ANY_VERSION = -1
"""As the expected version of `SetData`, `Delete`, `Check`: whatever it is."""


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
    """-> `Created`. `sequential` appends the parent's ten-digit counter to `path`, which is then a prefix. No
    `acl`: open to all. No data is null, which is not the same as empty: a reader of Kafka's tells them apart."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[Acl, ...] | None = None


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
    data: bytes | None
    stat: Stat


@dataclass(frozen=True, slots=True)
class NodeChildren:
    names: tuple[str, ...]
    stat: Stat


@dataclass(frozen=True, slots=True)
class Created:
    """`path` is the name the node got (they differ for sequential ones). Inside a `Multi`, `stat` is None."""

    path: str
    stat: Stat | None


@dataclass(frozen=True, slots=True)
class NodeAcl:
    acl: tuple[Acl, ...]
    stat: Stat


PartResult = Created | Stat | None
Result = NodeData | NodeChildren | NodeAcl | PartResult | tuple[PartResult, ...]


# --- events


class WatchType(Enum):
    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    """One watch has fired, and is gone. `generation` is the session's (see `SessionEvent`)."""

    type: WatchType
    path: str
    generation: int = 1


class SessionState(Enum):
    CONNECTED = "connected"
    """A connection to the tree stands (again); the session and its ephemerals are alive."""
    DISCONNECTED = "disconnected"
    """The connection is lost; the session may still be alive."""
    EXPIRED = "expired"
    """The session has ended, its ephemerals and watches are gone. It stays so until `Tree.reopen`."""
    AUTH_FAILED = "auth failed"
    """The tree refused the credentials; the session is of no use."""


class SessionEvent(NamedTuple):
    """The session's state has changed. `generation` counts this tree's sessions: 1 for the first, 2 after an
    expiry."""

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
    pass


class BadVersion(TreeError):
    pass


class NotEmpty(TreeError):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(TreeError):
    pass


class NoAuth(TreeError):
    """The node's ACL does not allow it."""


class InvalidAcl(TreeError):
    pass


class BadArguments(TreeError):
    """A path or an argument that the tree refuses."""


class TooLarge(TreeError):
    """The request is larger than `jute.maxbuffer`; it was not sent."""


class ConnectionLoss(TreeError):
    """The connection was lost before the answer came: the outcome is *unknown*."""


class SessionExpired(TreeError):
    """The session has ended. The operation was not applied after its end; it may have been applied before."""


class AuthFailed(TreeError):
    pass


class TreeClosed(TreeError):
    """This client of the tree was closed, or not started. The operation was not sent."""


class SystemFailure(TreeError):
    """The tree itself failed (a system error of the server, a damaged file). The outcome is unknown."""


class RolledBack(TreeError):
    """Part of a failed `Multi`: it was fine, and was undone because a later part failed."""


class RuntimeInconsistency(TreeError):
    """Part of a failed `Multi`: it was not tried, because an earlier part failed."""


class MultiFailed(TreeError):
    """A `Multi` was not applied. `errors` has one a part; `index` and `error` are the part that was
    refused."""

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
