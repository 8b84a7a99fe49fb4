"""A conversation in ZooKeeper's protocol, in bytes, and what of the responses must be the same everywhere.

The requests are encoded here, independently of the server's own code. `recorded.json` has the responses of a real
ZooKeeper 3.8.4; `test_recorded` compares ours with them, and `compat_tests/tree/test_served_differential.py` them with
those of the ZooKeeper that is there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PING_XID, AUTH_XID, SET_WATCHES_XID, EVENT_XID = -2, -4, -8, -1
STAT_BYTES = 68
WITH_STAT = frozenset((3, 4, 5, 6, 7, 12, 15, 19))
"""Operations whose response ends with a Stat."""
MULTI, MULTI_READ, CLOSE = 14, 22, -11


class Step(NamedTuple):
    name: str
    op: int
    body: bytes
    xid: int = 7


def text(value: str | None) -> bytes:
    return data(None if value is None else value.encode())


def data(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def acl(*entries: tuple[int, str, str]) -> bytes:
    return struct.pack(">i", len(entries)) + b"".join(struct.pack(">i", p) + text(s) + text(i) for p, s, i in entries)


def texts(*values: str) -> bytes:
    return struct.pack(">i", len(values)) + b"".join(map(text, values))


OPEN = acl((31, "world", "anyone"))


def create(path: str, value: bytes | None = b"x", who: bytes = OPEN, flags: int = 0) -> bytes:
    return text(path) + data(value) + who + struct.pack(">i", flags)


def versioned(path: str, version: int = -1) -> bytes:
    return text(path) + struct.pack(">i", version)


def set_data(path: str, value: bytes | None, version: int = -1) -> bytes:
    return text(path) + data(value) + struct.pack(">i", version)


def read(path: str, watch: bool = False) -> bytes:
    return text(path) + struct.pack(">?", watch)


def auth(scheme: str, credentials: bytes) -> bytes:
    return struct.pack(">i", 0) + text(scheme) + data(credentials)


def multi(*parts: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack(">i?i", op, False, -1) + body for op, body in parts) + struct.pack(">i?i", -1, True, -1)


def set_watches(zxid: int, *paths: tuple[str, ...]) -> bytes:
    return struct.pack(">q", zxid) + b"".join(texts(*names) for names in paths)


SECRET = acl((31, "auth", ""), (1, "digest", "bob:hash="))
STEPS = (
    Step("create", 1, create("/a", b"one")),
    Step("create again", 1, create("/a")),
    Step("create without a parent", 1, create("/none/b")),
    Step("create with null data and a stat", 15, create("/a/null", None)),
    Step("create ephemeral", 15, create("/a/e", b"", flags=1)),
    Step("create below an ephemeral", 1, create("/a/e/x")),
    Step("create sequential", 1, create("/a/s-", flags=2)),
    Step("create sequential without a name", 1, create("/a/", flags=2)),
    Step("create ephemeral sequential", 1, create("/a/s-", flags=3)),
    Step("create a container", 19, create("/a/c", flags=4)),
    Step("create with a time to live", 21, create("/a/t", flags=5) + struct.pack(">q", 1000)),
    Step("create with unknown flags", 1, create("/a/f", flags=9)),
    Step("create without an ACL", 1, create("/a/n", who=acl())),
    Step("create with an unknown scheme", 1, create("/a/n", who=acl((31, "sasl2", "x")))),
    Step("create with a bad digest", 1, create("/a/n", who=acl((31, "digest", "x")))),
    Step("create with a bad address", 1, create("/a/n", who=acl((31, "ip", "300.0.0.1")))),
    Step("create for auth without a login", 1, create("/a/n", who=acl((31, "auth", "")))),
    Step("the container", 3, read("/a/c")),
    Step("exists", 3, read("/a", watch=True)),
    Step("exists not", 3, read("/none", watch=True)),
    Step("get", 4, read("/a")),
    Step("get null", 4, read("/a/null")),
    Step("get what is missing", 4, read("/none/x", watch=True)),
    Step("set, and hear of it", 5, set_data("/a", b"two", 0)),
    Step("set a wrong version", 5, set_data("/a", b"three", 0)),
    Step("set null", 5, set_data("/a", None, 1)),
    Step("create what was awaited", 1, create("/none")),
    Step("children", 8, read("/a/c", watch=True)),
    Step("children and stat", 12, read("/a/c")),
    Step("create a child, and hear of it", 1, create("/a/c/k")),
    Step("get ACL", 6, text("/a")),
    Step(
        "set ACL",
        7,
        text("/a")
        + acl((31, "world", "anyone"), (31, "world", "anyone"), (1, "ip", "10.0.0.0/8"))
        + struct.pack(">i", 0),
    ),
    Step("set ACL of a wrong version", 7, text("/a") + OPEN + struct.pack(">i", 0)),
    Step("get the new ACL", 6, text("/a")),
    Step("sync", 9, text("/a")),
    Step("delete with children", 2, versioned("/a")),
    Step("delete a wrong version", 2, versioned("/a/null", 4)),
    Step("delete what is missing", 2, versioned("/a/x")),
    Step("watch data and children", 4, read("/a/c/k", watch=True)),
    Step("and children of it", 8, read("/a/c/k", watch=True)),
    Step("delete, one event", 2, versioned("/a/c/k", 0)),
    Step(
        "multi",
        MULTI,
        multi(
            (13, versioned("/a", 2)),
            (1, create("/m", b"m")),
            (15, create("/m/2", None)),
            (1, create("/m/s", flags=2)),
            (5, set_data("/m", b"n", 0)),
            (2, versioned("/m/2")),
            (19, create("/m/c", flags=4)),
        ),
    ),
    Step("multi that fails", MULTI, multi((1, create("/m/x")), (13, versioned("/a", 77)), (2, versioned("/m")))),
    Step("multi of nothing", MULTI, multi()),
    Step("multi read", MULTI_READ, multi((4, read("/m")), (8, read("/m/c")), (4, read("/m/none")))),
    Step("count", 104, text("/a")),
    Step("count of what is missing", 104, text("/x")),
    Step("ephemerals", 103, text("/a/e")),
    Step("ephemerals elsewhere", 103, text("/b")),
    Step("who am i", 107, b""),
    Step("watch below", 106, versioned("/w", 1)),
    Step("watch in an unknown way", 106, versioned("/w", 2)),
    Step("create what is watched", 1, create("/w")),
    Step("create below what is watched", 1, create("/w/b")),
    Step("set below what is watched", 5, set_data("/w/b", b"1")),
    Step("remove the watch below", 18, versioned("/w", 3)),
    Step("watch always", 106, versioned("/w", 0)),
    Step("create a child of what is watched", 1, create("/w/c")),
    Step("delete the child", 2, versioned("/w/c")),
    Step("remove the watch", 18, versioned("/w", 3)),
    Step("set what is watched no more", 5, set_data("/w", b"1")),
    Step("remove no watch", 18, versioned("/w", 3)),
    Step("watch data once", 4, read("/w", watch=True)),
    Step("look for the watch of data", 17, versioned("/w", 2)),
    Step("look for a watch of children", 17, versioned("/w", 1)),
    Step("set watches again", 101, set_watches(0, ("/w", "/gone"), ("/a", "/not-yet"), ("/w", "/gone"))),
    Step("set later watches again", 105, set_watches(1 << 40, ("/w",), (), ("/w",), ("/m",), ("/a",)), SET_WATCHES_XID),
    Step("create below both", 1, create("/w/z")),
    Step("set below the recursive", 5, set_data("/a/null", b"1")),
    Step("set the persistent", 5, set_data("/m", b"1")),
    Step("reconfigure", 16, text("server.1=a:1:2") + text("") + text("") + struct.pack(">q", -1)),
    Step("login", 100, auth("digest", b"alice:secret"), AUTH_XID),
    Step("login by address", 100, auth("ip", b""), AUTH_XID),
    Step("create for auth", 1, create("/private", who=SECRET)),
    Step("its ACL", 6, text("/private")),
    Step("await what one may not read", 3, read("/shared", watch=True)),
    Step("create what others may change", 1, create("/shared", who=acl((6, "world", "anyone"), (1, "digest", "b:x")))),
    Step("read it", 4, read("/shared")),
    Step("list it", 8, read("/shared")),
    Step("does it exist", 3, read("/shared", watch=True)),
    Step("write it, and hear nothing", 5, set_data("/shared", b"2")),
    Step("create in it", 1, create("/shared/a")),
    Step("delete in it", 2, versioned("/shared/a")),
    Step("change its ACL", 7, text("/shared") + OPEN + struct.pack(">i", -1)),
    Step("check it", MULTI, multi((13, versioned("/shared", -1)))),
    Step("create what others may read", 1, create("/read", who=acl((1, "world", "anyone"), (31, "digest", "b:x")))),
    Step("see its ACL without passwords", 6, text("/read")),
    Step("write what one may read", 5, set_data("/read", b"2")),
    Step("close", -11, b""),
)
ENDS = (
    Step("an unknown operation", 999, b""),
    Step("a wrong login", 100, auth("kerberos", b"x"), AUTH_XID),
)
"""Each ends its connection."""


def connect(session_id: int = 0, password: bytes = bytes(16), timeout_ms: int = 30_000, zxid: int = 0) -> bytes:
    return struct.pack(">iqiq", 0, zxid, timeout_ms, session_id) + data(password) + b"\0"


class Session(NamedTuple):
    """What a ConnectResponse says."""

    timeout_ms: int
    id: int
    password: bytes

    @classmethod
    def of(cls, frame: bytes) -> Session:
        _, timeout_ms, session_id, size = struct.unpack_from(">iiqi", frame)
        assert len(frame) in (20 + size, 21 + size)
        return cls(timeout_ms, session_id, frame[20 : 20 + size])


PING = struct.pack(">ii", PING_XID, 11)
Exchange = Callable[[bytes], list[bytes]]
"""Sends a request; the responses and events up to that of the ping behind it, or to the end of the connection."""


def play(exchange: Exchange, steps: tuple[Step, ...], ranks: Ranks) -> Iterator[tuple[str, list[str]]]:
    """The canonical responses to each step, in hexadecimal."""
    for step in steps:
        frames = exchange(struct.pack(">ii", step.xid, step.op) + step.body)
        shown = [canonical(step.op, frame, ranks).hex() for frame in frames]
        yield step.name, sorted(shown) if step.op == CLOSE else shown  # ephemerals go in no particular order


class Ranks:
    """Zxids and ids differ; their order and equality must not."""

    def __init__(self) -> None:
        self._ranks: dict[int, int] = {0: 0}

    def of(self, zxid: int) -> int:
        return self._ranks.setdefault(zxid, len(self._ranks))


RECORDED = Path(__file__).parent / "recorded.json"


def recorded() -> dict[str, list[str]]:
    """What a real ZooKeeper said, by the name of the step."""
    found: dict[str, list[str]] = json.loads(RECORDED.read_text())
    return found


def conversation(connections: Iterator[Exchange]) -> dict[str, list[str]]:
    """All steps, the last ones with connections of their own."""
    ranks = Ranks()
    found = dict(play(next(connections), STEPS, ranks))
    for step in ENDS:
        found.update(play(next(connections), (step,), ranks))
    return found


def difference(found: dict[str, list[str]], expected: dict[str, list[str]]) -> dict[str, tuple[object, object]]:
    """Steps whose responses differ."""
    names = {**found, **expected}
    return {name: (found.get(name), expected.get(name)) for name in names if found.get(name) != expected.get(name)}


def until_ping(frames: list[bytes]) -> list[bytes]:
    """Those that are no responses to a ping."""
    return [frame for frame in frames if struct.unpack_from(">i", frame)[0] != PING_XID]


def canonical(op: int, frame: bytes, ranks: Ranks) -> bytes:
    """Without the zxid in the header (a failed write of ZooKeeper has one, too), times, and the session's id."""
    xid, _, error = struct.unpack_from(">iqi", frame)
    head, body = struct.pack(">iqi", xid, 0, error), frame[16:]
    if xid == EVENT_XID or error:
        return head + body
    if op in (MULTI, MULTI_READ):
        return head + _canonical_multi(body, ranks)
    if op in WITH_STAT:
        body = body[:-STAT_BYTES] + stat(body[-STAT_BYTES:], ranks)
    return head + (_sorted_names(body) if op in (8, 12, 103) else body)


def _sorted_names(body: bytes) -> bytes:
    """A vector of text, and what follows: children are in no particular order."""
    names, at = [], 4
    for _ in range(struct.unpack_from(">i", body)[0]):
        end = at + 4 + struct.unpack_from(">i", body, at)[0]
        names.append(body[at:end])
        at = end
    return body[:4] + b"".join(sorted(names)) + body[at:]


def stat(encoded: bytes, ranks: Ranks) -> bytes:
    czxid, mzxid, _, _, version, cversion, aversion, owner, length, children, pzxid = struct.unpack(
        ">qqqqiiiqiiq", encoded
    )
    shown = owner if owner < 0 else int(owner > 0)
    zxids = ranks.of(czxid), ranks.of(mzxid)
    return struct.pack(
        ">qqqqiiiqiiq", *zxids, 0, 0, version, cversion, aversion, shown, length, children, ranks.of(pzxid)
    )


def _canonical_multi(body: bytes, ranks: Ranks) -> bytes:
    out, at = b"", 0

    def skip(size: int) -> bytes:
        nonlocal at
        at += size
        return body[at - size : at]

    def sized() -> bytes:
        size = struct.unpack_from(">i", body, at)[0]
        return skip(4 + max(size, 0))

    while True:
        op, is_end, _ = struct.unpack_from(">i?i", body, at)
        out += skip(9)
        if is_end:
            assert at == len(body)
            return out
        if op == -1:
            out += skip(4)
        elif op == 8:
            count = struct.unpack_from(">i", body, at)[0]
            out += skip(4) + b"".join(sorted(sized() for _ in range(count)))
        elif op in (1, 15, 4):
            out += sized()
        if op in (15, 5, 4):
            out += stat(skip(STAT_BYTES), ranks)
