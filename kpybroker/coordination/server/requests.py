"""Requests: from the bytes of a frame to a value. What a client may send, and in which form.

Operations on nodes become those of `core.tree`; what only this protocol has is here.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple

from kpybroker.coordination.server.codes import ErrorCode, OpCode
from kpybroker.coordination.server.jute import JuteError, Reader
from kpybroker.core import tree as t


class Connect(NamedTuple):
    """The first request of a connection. `session_id` 0 asks for a new session.

    `is_old`: without the field `readOnly`, as clients before 3.4 send it; the response is without it too.
    """

    last_zxid_seen: int
    timeout_ms: int
    session_id: int
    password: bytes
    is_old: bool


class Sync(NamedTuple):
    """-> the path, once all changes so far are visible."""

    path: str


class Ping(NamedTuple):
    """Keeps the session alive."""


class Auth(NamedTuple):
    """Credentials, as the scheme defines them."""

    scheme: str
    credentials: bytes


class SetWatches(NamedTuple):
    """The watches of a client that has connected again; it has seen the changes up to `zxid`."""

    zxid: int
    data: list[str]
    exists: list[str]
    children: list[str]
    persistent: list[str]
    recursive: list[str]


class AddWatch(NamedTuple):
    """A watch that stays when it fires; a recursive one is of all nodes below the path too."""

    path: str
    is_recursive: bool


class WatcherType(IntEnum):
    """Which watches of a path are meant (org.apache.zookeeper.Watcher.WatcherType)."""

    CHILDREN = 1
    DATA = 2
    ANY = 3


class RemoveWatches(NamedTuple):
    """Remove watches of a path, or only say whether there are any (`keeps`)."""

    path: str
    type: WatcherType
    keeps: bool


class CloseSession(NamedTuple):
    """The end of the session."""


class WhoAmI(NamedTuple):
    """-> the identities of this client."""


class GetEphemerals(NamedTuple):
    """-> the ephemeral nodes of this session whose path begins with `prefix`."""

    prefix: str


class CountAll(NamedTuple):
    """-> the number of all nodes below a path."""

    path: str


class MultiRead(NamedTuple):
    """Several reads; each has its own result or error."""

    ops: tuple[t.Get | t.Children, ...]


class Refused(NamedTuple):
    """What is not served. After an unknown operation the connection is closed."""

    error: ErrorCode
    closes: bool = False


Body = (
    t.Operation
    | Sync
    | Ping
    | Auth
    | SetWatches
    | AddWatch
    | RemoveWatches
    | CloseSession
    | WhoAmI
    | GetEphemerals
    | CountAll
    | MultiRead
    | Refused
)


class Request(NamedTuple):
    """`codes` are those of the parts of a multi, which decide what their results look like."""

    xid: int
    code: int
    body: Body
    codes: tuple[OpCode, ...] = ()


class _NotServed(Exception):
    def __init__(self, error: ErrorCode) -> None:
        self.error = error


def decode_connect(frame: bytes) -> Connect:
    """Raises JuteError."""
    reader = Reader(frame)
    version = reader.int32()
    if version != 0:  # the first bytes of a Kafka request would be one
        raise JuteError(f"version {version}")
    zxid, timeout_ms, session_id = reader.int64(), reader.int32(), reader.int64()
    password = reader.buffer() or b""
    is_old = reader.left == 0
    if not is_old:
        reader.boolean()
    if reader.left:
        raise JuteError(f"{reader.left} bytes after a ConnectRequest")
    return Connect(zxid, timeout_ms, session_id, password, is_old)


def decode_request(frame: bytes) -> Request:
    """Raises JuteError."""
    reader = Reader(frame)
    xid, code = reader.int32(), reader.int32()
    try:
        if code in (OpCode.MULTI, OpCode.MULTI_READ):
            parts = _parts(reader)
            codes = tuple(part_code for part_code, _ in parts)
            return Request(xid, code, _joined(OpCode(code), [part for _, part in parts]), codes)
        decode = _DECODERS.get(code)
        return Request(xid, code, Refused(ErrorCode.UNIMPLEMENTED, closes=True) if decode is None else decode(reader))
    except _NotServed as refusal:
        return Request(xid, code, Refused(refusal.error))


# --- operations


class _Flag(IntEnum):
    """org.apache.zookeeper.CreateMode."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    PERSISTENT_WITH_TTL = 5
    PERSISTENT_SEQUENTIAL_WITH_TTL = 6


def _create(reader: Reader) -> t.Create:
    path, data, acl, number = reader.string(), reader.buffer(), _acl(reader), reader.int32()
    try:
        flag = _Flag(number)
    except ValueError:
        raise _NotServed(ErrorCode.BAD_ARGUMENTS) from None
    if flag in (_Flag.PERSISTENT_WITH_TTL, _Flag.PERSISTENT_SEQUENTIAL_WITH_TTL):
        raise _NotServed(ErrorCode.UNIMPLEMENTED)  # as ZooKeeper does without zookeeper.extendedTypesEnabled
    return t.Create(
        path,
        data,
        ephemeral=flag in (_Flag.EPHEMERAL, _Flag.EPHEMERAL_SEQUENTIAL),
        sequential=flag in (_Flag.PERSISTENT_SEQUENTIAL, _Flag.EPHEMERAL_SEQUENTIAL),
        acl=acl,
        container=flag is _Flag.CONTAINER,
    )


def _acl(reader: Reader) -> tuple[t.Acl, ...]:
    return tuple(reader.vector(lambda one: t.Acl(one.int32(), one.string(), one.string())))


def _paths(reader: Reader) -> list[str]:
    return reader.vector(Reader.string)


def _set_watches(reader: Reader, *, has_persistent: bool) -> SetWatches:
    zxid, data, exists, children = reader.int64(), _paths(reader), _paths(reader), _paths(reader)
    if not has_persistent:
        return SetWatches(zxid, data, exists, children, [], [])
    return SetWatches(zxid, data, exists, children, _paths(reader), _paths(reader))


def _auth(reader: Reader) -> Auth:
    reader.int32()  # a type that has no meaning
    return Auth(reader.string(), reader.buffer() or b"")


def _add_watch(reader: Reader) -> AddWatch:
    path, mode = reader.string(), reader.int32()
    if mode not in (0, 1):
        raise _NotServed(ErrorCode.MARSHALLING_ERROR)
    return AddWatch(path, mode == 1)


def _remove_watches(reader: Reader, *, keeps: bool) -> RemoveWatches:
    path, number = reader.string(), reader.int32()
    try:
        return RemoveWatches(path, WatcherType(number), keeps)
    except ValueError:
        raise _NotServed(ErrorCode.MARSHALLING_ERROR) from None


def _refused(error: ErrorCode, *, closes: bool = False) -> Callable[[Reader], Refused]:
    return lambda _: Refused(error, closes)


def _get(reader: Reader) -> t.Get:
    return t.Get(reader.string(), reader.boolean())


def _children(reader: Reader) -> t.Children:
    return t.Children(reader.string(), reader.boolean())


_DECODERS: Final[dict[int, Callable[[Reader], Body]]] = {
    OpCode.CREATE: _create,
    OpCode.CREATE_2: _create,
    OpCode.CREATE_CONTAINER: _create,
    OpCode.CREATE_TTL: _refused(ErrorCode.UNIMPLEMENTED),
    OpCode.DELETE: lambda r: t.Delete(r.string(), r.int32()),
    OpCode.EXISTS: lambda r: t.Exists(r.string(), r.boolean()),
    OpCode.GET_DATA: _get,
    OpCode.SET_DATA: lambda r: t.SetData(r.string(), r.buffer(), r.int32()),
    OpCode.GET_ACL: lambda r: t.GetAcl(r.string()),
    OpCode.SET_ACL: lambda r: t.SetAcl(r.string(), _acl(r), r.int32()),
    OpCode.GET_CHILDREN: _children,
    OpCode.GET_CHILDREN_2: _children,
    OpCode.SYNC: lambda r: Sync(r.string()),
    OpCode.PING: lambda _: Ping(),
    OpCode.CHECK: lambda r: t.Check(r.string(), r.int32()),
    OpCode.RECONFIG: _refused(ErrorCode.RECONFIG_DISABLED),
    OpCode.CHECK_WATCHES: lambda r: _remove_watches(r, keeps=True),
    OpCode.REMOVE_WATCHES: lambda r: _remove_watches(r, keeps=False),
    OpCode.AUTH: _auth,
    OpCode.SET_WATCHES: lambda r: _set_watches(r, has_persistent=False),
    OpCode.SASL: _refused(ErrorCode.AUTH_FAILED, closes=True),
    OpCode.GET_EPHEMERALS: lambda r: GetEphemerals(r.string()),
    OpCode.GET_ALL_CHILDREN_NUMBER: lambda r: CountAll(r.string()),
    OpCode.SET_WATCHES_2: lambda r: _set_watches(r, has_persistent=True),
    OpCode.ADD_WATCH: _add_watch,
    OpCode.WHO_AM_I: lambda _: WhoAmI(),
    OpCode.CLOSE_SESSION: lambda _: CloseSession(),
}

_WRITES: Final = (OpCode.CREATE, OpCode.CREATE_2, OpCode.CREATE_CONTAINER, OpCode.DELETE, OpCode.SET_DATA, OpCode.CHECK)
_READS: Final = (OpCode.GET_DATA, OpCode.GET_CHILDREN)


def _parts(reader: Reader) -> list[tuple[OpCode, Body]]:
    """Each part has a MultiHeader (its code, whether that was the last, an error) in front; the last has no part."""
    parts: list[tuple[OpCode, Body]] = []
    while True:
        code, is_end, _ = reader.int32(), reader.boolean(), reader.int32()
        if is_end:
            return parts
        if code == OpCode.CREATE_TTL:
            raise _NotServed(ErrorCode.UNIMPLEMENTED)
        if code not in _WRITES and code not in _READS:
            raise JuteError(f"operation {code} in a multi")
        parts.append((OpCode(code), _DECODERS[code](reader)))


def _joined(code: OpCode, parts: list[Body]) -> t.Multi | MultiRead:
    if code is OpCode.MULTI:
        writes = tuple(part for part in parts if isinstance(part, t.Create | t.SetData | t.Delete | t.Check))
        if len(writes) == len(parts):
            return t.Multi(writes)
    else:
        reads = tuple(part for part in parts if isinstance(part, t.Get | t.Children))
        if len(reads) == len(parts):
            return MultiRead(reads)
    raise JuteError(f"reads and writes in one {code.name}")
