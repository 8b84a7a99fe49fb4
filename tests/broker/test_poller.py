"""The poller calls whoever has something to read, and wakes up whoever says so."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
import trio
import trio.testing

from kpybroker.broker.poller import EVENTS_A_POLL, HAS_EPOLL, Poller, watch_alone

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="needs epoll")

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[Callable[[], Pair]]:
    made: list[socket.socket] = []

    def make() -> Pair:
        pair = socket.socketpair()
        for sock in pair:
            sock.setblocking(False)
        made.extend(pair)
        return pair

    yield make
    for sock in made:
        sock.close()


async def test_it_calls_for_as_long_as_it_is_told_to(pairs: Callable[[], Pair]) -> None:
    poller = Poller()
    near, far = pairs()
    heard: list[bytes] = []

    def on_readable() -> bool:
        heard.append(near.recv(1))
        far.send(b"c" if heard == [b"a"] else b"d")
        return heard[-1] != b"c"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        far.send(b"a")
        await poller.watch(near, on_readable)
        assert heard == [b"a", b"c"]
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert heard == [b"a", b"c"]  # what came after that is not its business
        nursery.cancel_scope.cancel()


async def test_an_error_is_raised_where_its_socket_is_watched(pairs: Callable[[], Pair]) -> None:
    poller = Poller()
    (near, far), (other, other_far) = pairs(), pairs()
    served: list[bytes] = []

    def fail() -> bool:
        raise ConnectionResetError

    async def watch_other() -> None:
        await poller.watch(other, lambda: served.append(other.recv(9)) is not None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        nursery.start_soon(watch_other)
        far.send(b"x")
        with pytest.raises(ConnectionResetError):
            await poller.watch(near, fail)
        other_far.send(b"still served")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert served == [b"still ser"]
        nursery.cancel_scope.cancel()


async def test_whoever_is_cancelled_is_not_called_any_more(pairs: Callable[[], Pair]) -> None:
    """Not even when another that is served in the same turn cancels it, or when it cancels itself."""
    poller = Poller()
    sockets = [pairs() for _ in range(3)]
    scopes = [trio.CancelScope() for _ in sockets]
    called: list[int] = []

    async def watch(number: int) -> None:
        def on_readable() -> bool:
            called.append(number)
            for scope in scopes:
                scope.cancel()
            return False

        with scopes[number]:
            await poller.watch(sockets[number][0], on_readable)

    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as nursery:
            for number, (_, far) in enumerate(sockets):
                far.send(b"x")
                nursery.start_soon(watch, number)
            await trio.testing.wait_all_tasks_blocked()
            outer.start_soon(poller.run)
        assert len(called) == 1
        outer.cancel_scope.cancel()


async def test_others_get_their_turn_however_much_there_is_to_read(pairs: Callable[[], Pair]) -> None:
    poller = Poller()
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        calls: dict[int, int] = {}

        async def watch(number: int, near: socket.socket) -> None:
            def on_readable() -> bool:  # reads nothing: there is always something
                calls[number] = calls.get(number, 0) + 1
                return True

            await poller.watch(near, on_readable)

        number_of_them = 3 * EVENTS_A_POLL
        for number in range(number_of_them):
            near, far = pairs()
            far.send(b"x")
            nursery.start_soon(watch, number, near)
        nursery.start_soon(poller.run)
        nursery.start_soon(count)
        while turns < 20:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert len(calls) == number_of_them
    assert max(calls.values()) <= 2 * min(calls.values()) + 2


async def test_without_a_poller_it_is_the_same(pairs: Callable[[], Pair]) -> None:
    near, far = pairs()
    heard = b""

    def on_readable() -> bool:
        nonlocal heard
        heard += near.recv(1)
        return heard != b"abc"

    far.send(b"abcd")
    await watch_alone(near, on_readable)
    assert near.recv(9) == b"d"
