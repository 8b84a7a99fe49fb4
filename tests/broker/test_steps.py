"""A handler in steps is done at once, or goes on as a coroutine from where it had to wait."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from kpybroker.broker.steps import Steps, run_steps


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


async def test_what_it_waits_for_comes_back_or_is_raised_where_it_waits() -> None:
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
