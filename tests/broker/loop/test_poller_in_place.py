"""The poller serves in trio's place, where trio would wait: trio goes on, clocks do not jump, and it is measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
import trio.lowlevel
import trio.testing

from kpybroker.broker.loop.poller import measure, measure_no_more
from kpybroker.system.sockets import HAS_EPOLL
from tests.broker.loop.conftest import Pair, new_poller

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="needs epoll")


class Busy:
    """A socket that always has something to read."""

    def __init__(self, pair: Pair) -> None:
        self.near, far = pair
        self.calls = 0
        far.send(b"x")

    def __call__(self) -> bool:
        self.calls += 1
        return True


async def test_trio_goes_on_while_the_poller_serves_in_its_place(pairs: Callable[[], Pair]) -> None:
    """Its timers, its threads, its sockets: none waits until there is nothing left to read."""
    poller, busy = new_poller(), Busy(pairs())
    near, far = pairs()
    far.send(b"y")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        nursery.start_soon(poller.watch, busy.near, busy)
        with trio.fail_after(30):
            await trio.sleep(0.01)
            await trio.to_thread.run_sync(lambda: None)
            await trio.lowlevel.wait_readable(near)
        assert busy.calls > 3
        nursery.cancel_scope.cancel()


async def test_what_is_served_may_wake_a_task_or_move_its_deadline(pairs: Callable[[], Pair]) -> None:
    poller = new_poller()
    near, far = pairs()
    woken = trio.Event()
    scope = trio.CancelScope()

    def on_readable() -> bool:
        if near.recv(1) == b"w":
            woken.set()
        else:
            scope.deadline = trio.current_time()
        return True

    async def sleep() -> None:
        with scope:
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        nursery.start_soon(poller.watch, near, on_readable)
        with trio.fail_after(30):
            async with trio.open_nursery() as sleepers:
                sleepers.start_soon(sleep)
                await trio.testing.wait_all_tasks_blocked()
                await trio.to_thread.run_sync(far.send, b"d")
            assert scope.cancelled_caught
            await trio.to_thread.run_sync(far.send, b"w")
            await woken.wait()
        nursery.cancel_scope.cancel()


async def test_a_clock_does_not_jump_before_everything_is_served(
    pairs: Callable[[], Pair], autojump_clock: trio.testing.MockClock
) -> None:
    poller = new_poller()
    near, far = pairs()
    times: list[float] = []

    def on_readable() -> bool:
        near.recv(1)
        times.append(trio.current_time())
        if len(times) < 20:
            far.send(b"x")
        return True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        nursery.start_soon(poller.watch, near, on_readable)
        began = trio.current_time()
        far.send(b"x")
        await trio.sleep(100)
        assert times == [began] * 20
        nursery.cancel_scope.cancel()


async def test_a_gauge_measures_time_slices_in_trios_place_and_no_waits(pairs: Callable[[], Pair]) -> None:
    poller, busy = new_poller(), Busy(pairs())
    heard: list[str] = []

    class Gauge(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            heard.append("after")

        def before_io_wait(self, timeout: float) -> None:
            heard.append("before")

    early, late = Gauge(), Gauge()
    measure(early)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(poller.run)
        await trio.testing.wait_all_tasks_blocked()
        measure(late)
        heard.clear()
        nursery.start_soon(poller.watch, busy.near, busy)
        while busy.calls < 100:
            await trio.to_thread.run_sync(lambda: None)
        nursery.cancel_scope.cancel()
    measure_no_more(early)
    measure_no_more(late)
    assert heard.count("before") >= 2 * 50
    pairs_of_both = ["before", "before", "after", "after"]
    assert heard[: len(heard) // 4 * 4] == pairs_of_both * (len(heard) // 4)  # both turns end before anything waits


async def test_whatever_breaks_the_poller_ends_its_run_and_not_in_silence(pairs: Callable[[], Pair]) -> None:
    poller, busy = new_poller(), Busy(pairs())

    class Broken(trio.abc.Instrument):
        def after_io_wait(self, timeout: float) -> None:
            raise LookupError

    poller.add_gauge(Broken())
    with trio.fail_after(30), pytest.RaisesGroup(LookupError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.watch, busy.near, busy)
            nursery.start_soon(poller.run)
