"""Responses: from values to the bytes of a frame, with its length in front."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kpybroker.coordination.server import jute
from kpybroker.coordination.server.codes import NOTIFICATION_XID, SYNC_CONNECTED, ErrorCode, OpCode, code_of
from kpybroker.core import tree as t
from kpybroker.core.tree import Stat, WatchType

_STAT = struct.Struct(">qqqqiiiqiiq")
_HEADER = struct.Struct(">iqi")
_MULTI_HEADER = struct.Struct(">i?i")
_END_OF_MULTI = _MULTI_HEADER.pack(-1, True, -1)
_INT_MAX = (1 << 31) - 1


def frame(body: bytes) -> bytes:
    """With its length in front."""
    return jute.int32(len(body)) + body


def connected(timeout_ms: int, session_id: int, password: bytes, *, is_old: bool) -> bytes:
    """A ConnectResponse; timeout and id 0 say that the session has ended."""
    body = jute.int32(0) + jute.int32(timeout_ms) + jute.int64(session_id) + jute.buffer(password)
    return frame(body if is_old else body + b"\0")  # never read-only


def reply(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """A response to a request; an error has no body."""
    return frame(_HEADER.pack(xid, zxid, error) + body)


def notification(kind: WatchType, path: str) -> bytes:
    """A watch event."""
    event = jute.int32(kind.value) + jute.int32(SYNC_CONNECTED) + jute.string(path)
    return frame(_HEADER.pack(NOTIFICATION_XID, -1, 0) + event)


def stat(value: Stat) -> bytes:
    """A Stat; counters start again where Java's would. That a node is a container is not shown (DataNode.copyStat)."""
    return _STAT.pack(
        value.czxid,
        value.mzxid,
        value.ctime,
        value.mtime,
        _wrapped(value.version),
        _wrapped(value.cversion),
        _wrapped(value.aversion),
        0 if value.ephemeral_owner == t.CONTAINER_OWNER else value.ephemeral_owner,
        value.data_length,
        value.num_children,
        value.pzxid,
    )


def _wrapped(counter: int) -> int:
    return counter if counter <= _INT_MAX else (counter + _INT_MAX + 1) % (2 * (_INT_MAX + 1)) - _INT_MAX - 1


def acl(entries: Sequence[t.Acl]) -> bytes:
    """A vector of entries of an access control list."""
    return jute.vector(
        jute.int32(one.permissions) + jute.string(one.scheme) + jute.string(one.identity) for one in entries
    )


def strings(values: Sequence[str]) -> bytes:
    """A vector of text."""
    return jute.vector(map(jute.string, values))


def result(code: int, value: t.Result) -> bytes:
    """The body of a successful response to an operation on a node."""
    match value:
        case t.NodeData():
            return jute.buffer(value.data) + stat(value.stat)
        case t.NodeChildren():
            return strings(value.names) + (stat(value.stat) if code == OpCode.GET_CHILDREN_2 else b"")
        case t.NodeAcl():
            return acl(value.acl) + stat(value.stat)
        case t.Created():
            has_stat = code != OpCode.CREATE and value.stat is not None
            return jute.string(value.path) + (stat(value.stat) if has_stat and value.stat is not None else b"")
        case Stat():
            return stat(value)
        case _:
            return b""


def multi(codes: Sequence[OpCode], parts: Sequence[t.Result | t.TreeError]) -> bytes:
    """The results of the parts; those of a multi that failed are errors all, 0 where a part itself did not fail."""
    encoded = [_part(code, part) for code, part in zip(codes, parts, strict=True)]
    return b"".join(encoded) + _END_OF_MULTI


def _part(code: OpCode, part: t.Result | t.TreeError) -> bytes:
    if isinstance(part, t.TreeError):
        error = code_of(part)
        return _MULTI_HEADER.pack(OpCode.ERROR, False, error) + jute.int32(error)
    shown = OpCode.CREATE_2 if code is OpCode.CREATE_CONTAINER else code
    return _MULTI_HEADER.pack(shown, False, ErrorCode.OK) + result(code, part)
