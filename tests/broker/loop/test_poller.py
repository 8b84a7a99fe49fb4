"""The poller calls every socket that has something to read, and wakes a task when its `on_ready` asks for it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
import trio
import trio.lowlevel
import trio.testing

from kpybroker.broker.loop.alone import Alone
from kpybroker.broker.loop.poller import EVENTS_A_POLL, SLICE_S, SLICES_MAX, Poller
from kpybroker.system.sockets import HAS_EPOLL
from tests.broker.loop.conftest import Pair, new_poller
from tests.support.brokers.hosted import until
from tests.support.time_slices import counted_time_slices

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="needs epoll")


async def test_it_calls_until_on_ready_returns_false(pairs: Callable[[], Pair]) -> None:
    poller = new_poller()
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
    poller = new_poller()
    (near, far), (other, other_far) = pairs(), pairs()
    served: list[bytes] = []

    def fail() -> bool:
        raise ConnectionResetError

    def take() -> bool:
        served.append(other.recv(9))
        return False

    async def watch_other() -> None:
        await poller.watch(other, take)

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


async def test_a_cancelled_socket_is_not_called_any_more(pairs: Callable[[], Pair]) -> None:
    """Not even when another that is served in the same turn cancels it, or when it cancels itself."""
    poller = new_poller()
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


async def test_trios_tasks_run_however_much_there_is_to_read(pairs: Callable[[], Pair]) -> None:
    poller = new_poller()
    async with counted_time_slices() as of_others, trio.open_nursery() as nursery:
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
        while of_others() < 20:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert len(calls) == number_of_them
    assert max(calls.values()) <= 2 * min(calls.values()) + 2


async def test_a_poked_socket_is_called_in_the_current_time_slice_or_in_one_of_its_own(
    pairs: Callable[[], Pair],
) -> None:
    poller = new_poller()
    (near, far), (suspended, _) = pairs(), pairs()
    called: list[str] = []

    def on_readable() -> bool:
        near.recv(1)
        poller.poke(suspended)
        poller.poke(suspended)
        called.append("near")
        return True

    def on_poke() -> bool:
        called.append("suspended")
        return True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        nursery.start_soon(poller.watch, near, on_readable)
        nursery.start_soon(poller.watch, suspended, on_poke)
        far.send(b"x")
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert called == ["near", "suspended"]  # once for both
        poller.poke(suspended)
        assert len(called) == 2
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert called[2:] == ["suspended"]
        nursery.cancel_scope.cancel()
    poller.poke(suspended)  # no task watches it any more


@pytest.mark.parametrize("make", [new_poller, Alone])
async def test_a_muted_one_is_not_called_before_it_is_poked(
    pairs: Callable[[], Pair], make: Callable[[], Poller | Alone]
) -> None:
    """However much there is to read, or if its peer is gone; and it may be cancelled."""
    watcher = make()
    near, far = pairs()
    calls = 0
    left: list[bool] = []

    def on_readable() -> bool:
        nonlocal calls
        calls += 1
        if calls != 3:
            watcher.mute(near, left.append)
            watcher.mute(near, left.append)
        return True

    async with trio.open_nursery() as nursery:
        if isinstance(watcher, Poller):
            nursery.start_soon(watcher.run)
        nursery.start_soon(watcher.watch, near, on_readable)
        far.send(b"x")
        for expected in (1, 2):
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert calls == expected
            watcher.poke(near)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert calls == 4  # the third call left it to the poller to find that there is something to read
        assert not left
        far.close()
        while not left:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert [calls, len(left)] == [4, 1]
        nursery.cancel_scope.cancel()


async def test_trios_tasks_run_however_many_sockets_are_poked_at_once(
    pairs: Callable[[], Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand suspended requests that one append ends: each takes a tenth of a turn here."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now

    monkeypatch.setattr("kpybroker.broker.loop.poller.time.perf_counter", clock)
    poller = new_poller()
    watched = [pairs()[0] for _ in range(100)]
    turns: list[int] = []
    called: list[int] = []

    def on_poked(number: int) -> bool:
        nonlocal now
        now += SLICE_S / 10
        called.append(number)
        return True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        for number, near in enumerate(watched):
            nursery.start_soon(poller.watch, near, partial(on_poked, number))
        await trio.testing.wait_all_tasks_blocked()
        for near in watched:
            poller.poke(near)
        while len(called) < len(watched):
            turns.append(len(called))
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert called == list(range(100))
    assert max(later - earlier for earlier, later in pairwise(turns)) <= 2 * 11  # of two turns before the other's


@pytest.mark.parametrize("others", [1, 3])
async def test_a_client_has_its_turn_however_many_sockets_of_another_are_ready(
    pairs: Callable[[], Pair], monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Each call takes a whole time slice here. Counted is who is called, not how long that takes."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now

    monkeypatch.setattr("kpybroker.broker.loop.poller.time.perf_counter", clock)
    poller = new_poller()
    called: list[str] = []

    def serve(client: str) -> bool:  # reads nothing: there is always something
        nonlocal now
        now += 2 * SLICE_S
        called.append(client)
        return True

    async with trio.open_nursery() as nursery:
        for client in ["crowd"] * 5 * EVENTS_A_POLL + [f"other{number}" for number in range(others)]:
            near, far = pairs()
            far.send(b"x")
            nursery.start_soon(poller.watch, near, partial(serve, client), False, client)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(poller.run)
        while len(called) < 400:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    settled = called[20 * EVENTS_A_POLL :]
    for client in {*called} - {"crowd"}:
        assert settled.count(client) >= settled.count("crowd") - 1


async def test_tasks_have_their_next_slices_in_turn(pairs: Callable[[], Pair]) -> None:
    poller = new_poller()
    order: list[str] = []

    async def work(client: str, slices: int) -> None:
        for _ in range(slices):
            await poller.next_slice(client)
            order.append(client)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        with trio.fail_after(60):
            async with trio.open_nursery() as working:
                for _ in range(100):
                    working.start_soon(work, "crowd", 5)
                working.start_soon(work, "other", 40)
                cancelled = trio.CancelScope()
                working.start_soon(_within, cancelled, poller)
                await trio.lowlevel.checkpoint()
                cancelled.cancel()
        nursery.cancel_scope.cancel()
    last = max(index for index, client in enumerate(order) if client == "other")
    assert order[:last].count("crowd") <= 40 * SLICES_MAX  # at most one of so many that are woken at once is the other
    assert len(order) == 540


async def _within(scope: trio.CancelScope, poller: Poller) -> None:
    with scope:
        await poller.next_slice("crowd")
        raise AssertionError("it was cancelled before")


async def test_tasks_that_wait_for_a_slice_go_on_when_the_poller_ends() -> None:
    poller = new_poller()
    done = False

    async def work() -> None:
        nonlocal done
        await poller.next_slice("client")
        done = True

    async with trio.open_nursery() as nursery:
        running = trio.CancelScope()

        async def run() -> None:
            with running:
                await poller.run()

        nursery.start_soon(run)
        nursery.start_soon(work)
        await trio.lowlevel.checkpoint()
        running.cancel()
    assert done


@pytest.mark.parametrize("make", [new_poller, Alone])
@pytest.mark.parametrize("has_sent", [True, False])
@pytest.mark.parametrize("how", ["close", "half", "reset"])
async def test_a_task_that_waits_for_something_else_learns_that_its_peer_has_left(
    make: Callable[[], Poller | Alone], has_sent: bool, how: str
) -> None:
    """Also behind bytes that were not read; once; and not after `ignore_end`."""
    watcher = make()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        near, _ = listener.accept()
    near.setblocking(False)
    left: list[bool] = []
    async with trio.open_nursery() as nursery:
        if isinstance(watcher, Poller):
            nursery.start_soon(watcher.run)
        with near, far:
            watcher.heed_end(near, left.append)
            watcher.ignore_end(near)
            watcher.heed_end(near, left.append)
            if has_sent:
                far.send(b"a next request")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not left
            if how == "half":
                far.shutdown(socket.SHUT_WR)
            elif how == "reset":
                far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                far.close()
            else:
                far.close()
            await until(lambda: bool(left))
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert len(left) == 1
            if isinstance(watcher, Poller):
                assert left == [how == "reset"]
            watcher.ignore_end(near)
            nursery.cancel_scope.cancel()


async def test_a_run_has_one_poller_for_as_long_as_it_is_run(pairs: Callable[[], Pair]) -> None:
    poller = new_poller()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(new_poller().run)
            nursery.start_soon(new_poller().run)
            await trio.testing.wait_all_tasks_blocked()
            assert new_poller() is poller
            nursery.cancel_scope.cancel()
        poller, ended = new_poller(), poller
        assert poller is not ended
