"""Without a poller a socket is watched in the same way. What both do is tested in test_poller.py."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from kpybroker.broker.loop import alone
from kpybroker.broker.loop.alone import Alone
from kpybroker.system import sockets
from tests.support.brokers.hosted import until


async def test_it_calls_until_on_ready_returns_false() -> None:
    near, far = socket.socketpair()
    heard = b""

    def on_readable() -> bool:
        nonlocal heard
        heard += near.recv(1)
        return heard != b"abc"

    with near, far:
        near.setblocking(False)
        far.send(b"abcd")
        await Alone().watch(near, on_readable)
        assert near.recv(9) == b"d"


async def test_while_a_task_watches_no_one_else_looks_for_the_end() -> None:
    """Both would wait for the same socket; what is ended too late, or begun too early, is nothing."""
    near, far = socket.socketpair()
    left: list[bool] = []
    lonely = Alone()
    with near, far:
        near.setblocking(False)
        async with trio.open_nursery() as nursery:
            lonely.heed_end(near, left.append)
            nursery.start_soon(lonely.watch, near, lambda: bool(near.recv(1)))
            await trio.testing.wait_all_tasks_blocked()
            lonely.heed_end(near, left.append)
            far.close()
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert not left


async def test_on_other_systems_bytes_hide_the_end_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_POLLRDHUP", 0)
    monkeypatch.setattr(alone, "LOOK_S", 0.001)
    near, far = socket.socketpair()
    left: list[bool] = []
    lonely = Alone()
    with near, far:
        near.setblocking(False)
        far.send(b"x")
        far.close()
        lonely.heed_end(near, left.append)
        await trio.sleep(0.01)
        assert not left
        assert near.recv(9) == b"x"
        await until(lambda: left == [False])
