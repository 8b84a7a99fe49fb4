"""A handler in steps is done at once, or goes on as a coroutine from where it had to wait."""

from __future__ import annotations

from functools import partial
from math import inf

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.steps import Steps, Suspended, Wait, run_steps


async def double(number: int) -> int:
    await trio.lowlevel.checkpoint()
    if number < 0:
        raise ValueError(number)
    return 2 * number


def total(numbers: list[int]) -> Steps[int]:
    found = 0
    for number in numbers:
        try:
            found += yield partial(double, number)
        except ValueError:
            found += 1000
    return found


def test_what_waits_for_nothing_is_done_at_once() -> None:
    assert run_steps(total([])) == 0


async def test_what_it_waits_for_is_returned_or_raised_where_it_waits() -> None:
    going_on = run_steps(total([1, -1, 3]))
    assert not isinstance(going_on, int)
    assert await going_on == 1008


async def test_an_error_of_its_own_ends_it() -> None:
    def fails() -> Steps[None]:
        yield trio.lowlevel.checkpoint
        raise KeyError

    going_on = run_steps(fails())
    assert going_on is not None
    with pytest.raises(KeyError):
        await going_on


async def test_cancelled_while_it_waits_it_cleans_up() -> None:
    cleaned = []

    def waits() -> Steps[None]:
        try:
            yield trio.sleep_forever
        finally:
            cleaned.append(True)

    with trio.CancelScope() as scope:
        scope.cancel()
        going_on = run_steps(waits())
        assert going_on is not None
        await going_on
    assert cleaned == [True]


def parks(waits: list[Wait], closed: list[bool]) -> Steps[str]:
    try:
        yield from waits
    finally:
        closed.append(True)
    return "done"


def test_suspended_steps_go_on_without_a_task_from_one_wait_to_the_next() -> None:
    waits, closed = [Wait(inf), Wait(inf)], list[bool]()
    ended: list[int] = []
    suspended = run_steps(parks(waits, closed))
    for number, wait in enumerate(waits):
        assert isinstance(suspended, Suspended)
        assert suspended.wait is wait
        wait.on_end = partial(ended.append, number)
        wait.end()
        wait.end()
        suspended = suspended.resume()
    assert (suspended, ended, closed) == ("done", [0, 1], [True])


async def test_suspended_steps_can_be_awaited_by_a_task(autojump_clock: trio.testing.MockClock) -> None:
    """Until their waits are ended, before or while they are awaited, or until their time is over."""
    ended_before, ended, timed_out = waits = [Wait(inf), Wait(inf), Wait(trio.current_time() + 7)]
    suspended = run_steps(parks(waits, []))
    assert isinstance(suspended, Suspended)
    ended_before.end()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def end() -> None:
            await trio.sleep(3)
            ended.end()

        assert await suspended == "done"
    assert trio.current_time() == 7
    assert timed_out.is_over


def test_suspended_steps_that_are_closed_clean_up() -> None:
    closed: list[bool] = []
    suspended = run_steps(parks([Wait(inf)], closed))
    assert isinstance(suspended, Suspended)
    suspended.close()
    assert closed == [True]
