"""What one client receives, and when: events before the response that shows the change, nothing before the commit."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio
import trio.testing

from kpybroker.coordination import database
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.core import tree as t
from tests.coordination.server.conversation import acl, auth, create, multi, read, set_data, versioned
from tests.coordination.server.harness import Bench, Client, event_of

CREATE, EXISTS, GET, SET, CHILDREN = 1, 3, 4, 5, 8
CREATED, DELETED, CHANGED, CHILDREN_CHANGED = 1, 2, 3, 4
T = TypeVar("T")


def connected(bench: Bench) -> Client:
    client = bench.client()
    client.connect()
    return client


def call(op: int, body: bytes, xid: int = 1) -> bytes:
    return struct.pack(">ii", xid, op) + body


def xids(frames: list[bytes]) -> list[int]:
    return [struct.unpack_from(">i", frame)[0] for frame in frames]


def test_an_event_is_before_the_response_that_shows_the_change() -> None:
    bench = Bench()
    writer, reader = connected(bench), connected(bench)
    writer.ask(CREATE, create("/a"))
    reader.ask(GET, read("/a", watch=True))
    writer.send(call(SET, set_data("/a", b"2")))
    reader.send(call(GET, read("/a"), 5))
    bench.commit()
    event, response = reader.frames()
    assert event_of(event) == (CHANGED, "/a")
    assert xids([response]) == [5]


def test_an_event_is_behind_the_response_that_set_its_watch() -> None:
    bench = Bench()
    writer, reader = connected(bench), connected(bench)
    writer.send(call(CREATE, create("/a")))
    reader.send(call(GET, read("/a", watch=True), 5))
    writer.send(call(SET, set_data("/a", b"2")))
    assert reader.frames() == []
    bench.commit()
    assert xids(reader.frames()) == [5, -1]


def test_a_watch_fires_once_and_for_both_of_its_kinds_once() -> None:
    bench = Bench()
    client = connected(bench)
    client.ask(CREATE, create("/a"))
    client.ask(GET, read("/a", watch=True))
    client.ask(EXISTS, read("/a", watch=True))
    client.ask(CHILDREN, read("/a", watch=True))
    frames = client.ask_raw(call(2, versioned("/a")), call(CREATE, create("/a")))
    assert xids(frames) == [-1, 1, 1]
    assert event_of(frames[0]) == (DELETED, "/a")
    assert bench.service.watches.total == 0


def test_persistent_and_recursive_watches_stay() -> None:
    bench = Bench()
    writer, once, always, below = (connected(bench) for _ in range(4))
    writer.ask(CREATE, create("/a"))
    once.ask(CHILDREN, read("/a", watch=True))
    assert always.ask(106, versioned("/a", 0)) == (0, bytes(4))
    assert below.ask(106, versioned("/", 1)) == (0, bytes(4))
    for name in ("b", "c"):
        writer.ask(CREATE, create(f"/a/{name}"))
    writer.ask(SET, set_data("/a", b"2"))
    assert once.events() == [(CHILDREN_CHANGED, "/a")]
    assert always.events() == [(CHILDREN_CHANGED, "/a")] * 2 + [(CHANGED, "/a")]
    assert below.events() == [(CREATED, "/a/b"), (CREATED, "/a/c"), (CHANGED, "/a")]
    assert below.ask(18, versioned("/", 3))[0] == 0
    assert below.ask(18, versioned("/", 3))[0] == -121
    bench.service.remove(always.peer)
    assert bench.service.watches.total == 0


def test_a_change_by_the_broker_itself_is_an_event_too() -> None:
    bench = Bench()
    client = connected(bench)
    client.ask(EXISTS, read("/brokers", watch=True))
    bench.store.write_as(t.Create("/brokers", b"x"), 0, None)
    assert client.frames() == []
    bench.commit()
    assert client.events() == [(CREATED, "/brokers")]


def test_an_event_of_a_node_that_one_may_not_read_is_not_sent() -> None:
    bench = Bench()
    owner, other = connected(bench), connected(bench)
    owner.ask(100, auth("digest", b"alice:secret"), -4)
    other.ask(EXISTS, read("/secret", watch=True))
    owner.ask(EXISTS, read("/secret", watch=True))
    frames = owner.ask_raw(call(CREATE, create("/secret", who=acl((31, "auth", "")))))
    assert xids(frames) == [-1, 1]
    assert other.events() == []
    assert other.ask(GET, read("/secret"))[0] == -102
    assert other.ask(100, auth("digest", b"alice:wrong"), -4)[0] == 0
    assert other.ask(GET, read("/secret"))[0] == -102
    assert other.ask(100, auth("digest", b"alice:secret"), -4)[0] == 0
    assert other.ask(GET, read("/secret"))[0] == 0


def test_a_multi_that_lacks_a_permission_changes_nothing() -> None:
    bench = Bench()
    owner, other = connected(bench), connected(bench)
    owner.ask(CREATE, create("/p", who=acl((1, "world", "anyone"), (31, "ip", "10.0.0.0/8"))))
    error, body = other.ask(14, multi((CREATE, create("/x")), (CREATE, create("/p/x"))))
    assert error == 0
    assert struct.pack(">i?ii", -1, False, -102, -102) in body
    assert other.ask(EXISTS, read("/x"))[0] == -101
    near = bench.client("10.9.9.9")
    near.connect()
    assert near.ask(CREATE, create("/p/x"))[0] == 0


# --- commits


class Gate:
    """Lets commits end only when the test says so."""

    def __init__(self) -> None:
        self.open = trio.Event()

    async def __call__(self, function: Callable[[], T]) -> T:
        await self.open.wait()
        return function()


async def settled(store: EmbeddedStore) -> None:
    settle: Callable[[], Awaitable[None]] = store.settle
    await settle()


async def test_nothing_leaves_before_its_commit(tmp_path: Path) -> None:
    gate = Gate()
    bench = Bench(store=EmbeddedStore.open(tmp_path / "c.sqlite", gate, lambda: 1))
    client, other = bench.client(), bench.client()
    for one in (client, other):
        one.send(struct.pack(">iqiqi", 0, 0, 30_000, 0, 0))
        assert len(one.frames()) == 1
    client.send(call(CREATE, create("/a"), 5))
    other.send(call(EXISTS, read("/a"), 6))
    client.send(call(11, b"", -2))
    assert client.peer.is_waiting
    async with trio.open_nursery() as nursery:
        nursery.start_soon(settled, bench.store)
        await trio.testing.wait_all_tasks_blocked()
        assert client.frames() == other.frames() == []
        gate.open.set()
    assert xids(client.frames()) == [5, -2]
    assert xids(other.frames()) == [6]
    await bench.store.close()


async def test_a_commit_that_fails_ends_the_connections_that_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    gate.open.set()
    bench = Bench(store=EmbeddedStore.open(tmp_path / "c.sqlite", gate, lambda: 1))
    client, idle = bench.client(), bench.client()
    for one in (client, idle):
        one.send(struct.pack(">iqiqi", 0, 0, 30_000, 0, 0))
    client.send(call(CREATE, create("/a"), 5))

    def broken(*_: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(database.Database, "commit", broken)
    with pytest.raises(t.SystemFailure) as failure:
        await bench.store.settle()
    bench.service.commit_failed(str(failure.value))
    assert client.is_aborted
    assert not idle.is_aborted
    with pytest.raises(t.SystemFailure):
        await bench.store.close()
