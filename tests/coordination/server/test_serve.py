"""The server on sockets: connections that end, sessions that time out, and a port that is taken."""

from __future__ import annotations

import logging
import os
import struct
from pathlib import Path

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.clock import SystemClock
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.coordination.embedded import EmbeddedStore
from kpybroker.coordination.server.serve import FILE_LOOK_SECONDS, TreeServer
from kpybroker.coordination.server.sessions import Limits
from kpybroker.system.files import HAS_POSIX_FILES
from tests.coordination.conftest import served, wall_clock_ms
from tests.coordination.server.conversation import Session, connect, create


async def receive_frame(stream: trio.SocketStream) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        more = await stream.receive_some()
        assert more, "closed"
        data += more
    return data[4:]


async def ask(stream: trio.SocketStream, frame: bytes) -> bytes:
    await stream.send_all(struct.pack(">i", len(frame)) + frame)
    return await receive_frame(stream)


async def end_of(stream: trio.SocketStream) -> bytes:
    """What arrives until the connection is closed."""
    data = b""
    try:
        while more := await stream.receive_some():
            data += more
    except trio.BrokenResourceError:
        pass
    return data


async def test_a_wrong_client_is_closed_with_one_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served(tmp_path) as server:
        stream = await trio.open_tcp_stream(*server.address)
        with caplog.at_level(logging.INFO, "kafka.zookeeper"):
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert await end_of(stream) == b""
        (line,) = caplog.messages
        assert line.startswith("Connection of 127.0.0.1:")
        assert "('GET ' as text), where jute.maxbuffer is 1048575" in line
        other = await trio.open_tcp_stream(*server.address)
        await other.send_all(b"ruok")
        assert await end_of(other) == b"imok"


async def test_strangers_cause_one_line_and_not_one_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served(tmp_path) as server:
        for _ in range(50):
            stream = await trio.open_tcp_stream(*server.address)
            await stream.send_all(b"nonsense")
            assert await end_of(stream) == b""
        assert len(caplog.messages) == 1


async def test_a_stranger_has_a_deadline_even_with_a_session(tmp_path: Path) -> None:
    async with served(tmp_path, Limits(first_request_seconds_max=0.01)) as server:
        server.require("kpybroker:password")
        stream = await trio.open_tcp_stream(*server.address)
        await stream.send_all(struct.pack(">i", len(connect())) + connect())
        await end_of(stream)
        assert len(server.service.clients) == 0
        assert len(server.service.sessions) == 0


async def test_a_client_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with served(tmp_path, Limits(first_request_seconds_max=0.01)) as server:
        stream = await trio.open_tcp_stream(*server.address)
        assert await end_of(stream) == b""
        assert len(server.service.clients) == 0


async def test_a_client_that_goes_away_leaves_nothing_but_its_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        stream = await trio.open_tcp_stream(*server.address)
        session = Session.of(await ask(stream, connect()))
        await ask(stream, struct.pack(">ii", 1, 1) + create("/e", flags=1))
        await stream.aclose()
        while server.service.clients:
            await trio.testing.wait_all_tasks_blocked()
        again = await trio.open_tcp_stream(*server.address)
        assert Session.of(await ask(again, connect(session.id, session.password))) == session
        response = await ask(again, struct.pack(">ii", 2, -11))
        assert struct.unpack_from(">iqi", response)[2] == 0
        assert await end_of(again) == b""
        assert "/e" not in server.service.store.image.nodes


async def test_a_session_ends_by_the_clock_of_the_server() -> None:
    clock = MovableClock()
    store = EmbeddedStore.in_memory(clock.time_ms)
    server = TreeServer(store, clock)
    server.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        stream = await trio.open_tcp_stream(*server.address)
        await ask(stream, connect(timeout_ms=30_000))
        await ask(stream, struct.pack(">ii", 1, 1) + create("/e", flags=1))
        await clock.advance(25_000, trio.testing.wait_all_tasks_blocked)
        assert "/e" in store.image.nodes
        await clock.advance(5_000, trio.testing.wait_all_tasks_blocked)
        assert "/e" not in store.image.nodes
        assert await end_of(stream) == b""
        nursery.cancel_scope.cancel()


async def test_a_large_response_is_sent_whole(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        stream = await trio.open_tcp_stream(*server.address)
        await ask(stream, connect())
        data = bytes(1_000_000)
        await ask(stream, struct.pack(">ii", 1, 1) + create("/big", data))
        for _ in range(3):
            response = await ask(stream, struct.pack(">ii", 2, 4) + struct.pack(">i", 4) + b"/big\0")
            assert data in response


async def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        store = EmbeddedStore.in_memory(wall_clock_ms)
        with pytest.raises(OSError, match="in use"):
            TreeServer(store, SystemClock()).listen(*server.address)


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="an open file cannot be removed there")
async def test_a_file_that_is_taken_away_is_written_again_while_no_client_writes(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The process that serves the tree of several brokers has no broker that looks after it."""
    path = tmp_path / "c.sqlite"
    store = EmbeddedStore.open(path, trio.to_thread.run_sync, wall_clock_ms)
    tree = store.session()
    await tree.start(0)
    await tree.create("/a", b"1")
    server = TreeServer(store, SystemClock())
    server.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.serve)
        os.unlink(path)
        await trio.sleep(2 * FILE_LOOK_SECONDS)  # on the mock clock
        assert os.access(path, os.R_OK)
        nursery.cancel_scope.cancel()
    await store.close()
    again = EmbeddedStore.open(path, trio.to_thread.run_sync, wall_clock_ms)
    assert again.image.nodes["/a"].data == b"1"
    await again.close()
