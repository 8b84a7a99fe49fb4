"""A handler in steps is done at once, or goes on as a coroutine from where it had to wait."""

from __future__ import annotations

from functools import partial
from math import inf

import pytest
import trio
import trio.testing

from kpybroker.broker.loop.steps import Pending, Steps, Wait, pending, run_steps


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
        assert isinstance(suspended, Pending)
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
    assert isinstance(suspended, Pending)
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
    assert isinstance(suspended, Pending)
    suspended.close()
    assert closed == [True]


def test_the_end_of_a_wait_that_was_closed_calls_no_one() -> None:
    wait = Wait(inf)
    ended: list[bool] = []
    suspended = run_steps(parks([wait], []))
    assert isinstance(suspended, Pending)
    wait.on_end = partial(ended.append, True)
    suspended.close()
    wait.end()
    assert not ended


async def test_a_task_advances_steps_from_one_yield_to_the_next() -> None:
    """What must be awaited is awaited; a wait after it needs no task again."""
    wait = Wait(inf, serves_rest=True)

    def mixed() -> Steps[str]:
        try:
            found = yield partial(double, 2)
        except ValueError:
            found = -1
        try:
            yield partial(double, -1)
        except ValueError:
            found += 1
        yield wait
        return f"{found}"

    first = run_steps(mixed())
    assert isinstance(first, Pending)
    assert first.wait is None
    second = await first.advance()
    assert isinstance(second, Pending)
    third = await second.advance()
    assert isinstance(third, Pending)
    assert third.wait is wait
    wait.end()
    assert third.resume() == "5"


async def test_what_is_pending_is_a_part_of_other_steps_or_closed_with_them() -> None:
    closed: list[bool] = []

    def outer(inner: Pending[str]) -> Steps[str]:
        return "outer " + (yield from inner.as_steps())

    for ends in (True, False):
        wait = Wait(inf)
        inner = run_steps(parks([wait], closed))
        assert isinstance(inner, Pending)
        whole = run_steps(outer(inner))
        assert isinstance(whole, Pending)
        assert whole.wait is wait
        if ends:
            wait.end()
            assert whole.resume() == "outer done"
        else:
            whole.close()
    assert closed == [True, True]


async def test_a_coroutine_may_be_pending(recwarn: pytest.WarningsRecorder) -> None:
    assert await pending(double(4)) == 8
    assert await pending(double(4)).advance() == 8
    with pytest.raises(ValueError, match="-1"):
        await pending(double(-1)).advance()
    pending(double(4)).close()  # its connection has ended before its task awaits it
    assert not [warning for warning in recwarn if "never awaited" in str(warning.message)]
