"""Slow work: one thing at a time, each client in turn; small work never waits for large work, and it can be cancelled.

Time is what the test says: a clock that is beyond every slice at each look, so that work passes its turn at each pause
where others wait. What happens is ordered by events; nothing is measured.
"""

from __future__ import annotations

import threading

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.slow_work import SLICE_S, FairLock, SlowWork
from kpybroker.wire.records.pauses import PAUSE
from tests.support.brokers.hosted import until


class Clock:
    """Each look is later than the end of any slice that began before."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 2 * SLICE_S
        return self.now


def pause() -> None:
    hook = PAUSE.get()
    assert hook is not None
    hook()


class Giant:
    """Work that ends only when it may; it counts how often it began and how often it was ended from outside."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.has_begun = threading.Event()
        self.begun = 0
        self.ended = 0

    def __call__(self) -> str:
        self.begun += 1
        self.has_begun.set()
        try:
            while not self.may_end.wait(0.001):
                pause()
        except BaseException:
            self.ended += 1
            raise
        return "large"


async def test_small_work_does_not_wait_for_large_work_of_others_or_of_its_own_client() -> None:
    work, giants = SlowWork(Clock()), [Giant() for _ in range(5)]
    async with trio.open_nursery() as nursery:
        for number, giant in enumerate(giants):
            nursery.start_soon(work.of(f"attacker{number % 2}").run, giant)
        await until(lambda: all(giant.begun for giant in giants))
        with trio.fail_after(60):
            for client in ("other", "attacker0", "other"):
                assert await work.of(client).run(lambda: "small") == "small"
        assert work.is_busy
        assert sum(giant.begun - giant.ended for giant in giants) == 1  # the others wait, and keep nothing
        for giant in giants:
            giant.may_end.set()
    assert not work.is_busy


async def test_large_work_of_two_clients_is_done_one_after_the_other() -> None:
    work, first, second, third = SlowWork(Clock()), Giant(), Giant(), Giant()
    done: list[str] = []

    async def run(client: str, giant: Giant, name: str) -> None:
        assert await work.of(client).run(giant) == "large"
        done.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "a", first, "a1")
        await until(lambda: first.begun == 1)
        nursery.start_soon(run, "a", third, "a2")
        nursery.start_soon(run, "b", second, "b1")
        await until(lambda: second.ended + third.ended + first.ended == 2)
        for giant in (first, second, third):
            giant.may_end.set()
    assert sorted(done) == ["a1", "a2", "b1"]


@pytest.mark.parametrize("is_running", [True, False])
async def test_work_that_is_cancelled_ends_at_its_next_pause_or_never_begins(is_running: bool) -> None:
    work, giant, queued = SlowWork(Clock()), Giant(), Giant()
    async with trio.open_nursery() as nursery:
        scope, queued_scope = trio.CancelScope(), trio.CancelScope()

        async def run(within: trio.CancelScope, what: Giant) -> None:
            with within:
                await work.of("gone").run(what)

        nursery.start_soon(run, scope, giant)
        await until(giant.has_begun.is_set)
        if is_running:
            scope.cancel()
        else:
            held = SlowWork()
            await held._turn.take("x")
            nursery.start_soon(self_contained, held, queued_scope, queued)
            await trio.testing.wait_all_tasks_blocked(0.01)
            queued_scope.cancel()
            giant.may_end.set()
    assert (giant.ended, queued.begun) == (int(is_running), 0)
    assert not work.is_busy
    assert await work.of("other").run(lambda: 7) == 7


async def self_contained(work: SlowWork, scope: trio.CancelScope, what: Giant) -> None:
    with scope:
        await work.of("gone").run(what)


async def test_a_lock_goes_to_the_client_whose_turn_it_is() -> None:
    lock = FairLock()
    order: list[str] = []

    async def use(client: str) -> None:
        await lock.take(client)
        order.append(client)
        await trio.lowlevel.checkpoint()
        lock.release()

    await lock.take("first")
    async with trio.open_nursery() as nursery:
        for client in ("crowd", "crowd", "crowd", "other"):
            nursery.start_soon(use, client)
            await trio.testing.wait_all_tasks_blocked()
        cancelled = trio.CancelScope()
        with cancelled:
            cancelled.cancel()
            await lock.take("cancelled")
        assert lock.is_wanted
        lock.release()
    assert order == ["crowd", "other", "crowd", "crowd"]
    assert not lock.is_held


async def test_results_and_errors_are_passed_on() -> None:
    work = SlowWork()
    assert await work.of("a").run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await work.of("a").run(lambda: 1 // 0)
    assert PAUSE.get() is None
    assert not work.is_busy
