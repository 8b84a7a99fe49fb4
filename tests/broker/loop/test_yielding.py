"""Letting others run, and calls in threads: what they cost when they fail."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager

import pytest
import trio

from kpybroker.broker.loop.slow_work import SlowWork
from kpybroker.broker.loop.steps import Steps, run_to_end
from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget, in_thread, listed, paced
from kpybroker.wire.errors import ErrorCode, KafkaError


class Large:
    """Stands for megabytes that a caller holds."""


async def test_an_error_from_a_thread_keeps_nothing_alive_that_its_caller_held() -> None:
    """Not until the next full collection either, which may be an hour away."""
    caught: list[ErrorCode] = []

    async def ask() -> weakref.ref[Large]:
        held, within = Large(), Large()

        def fail(inner: Large = within) -> None:
            try:
                raise ValueError(inner)
            except ValueError as error:
                raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE) from error

        try:
            await in_thread(fail, SlowWork().of("client"))
        except KafkaError as error:
            caught.append(error.code)
        return weakref.ref(held)

    gc.collect()
    gc.disable()
    try:
        held = await ask()
        assert (caught, held()) == ([ErrorCode.MESSAGE_TOO_LARGE], None)
    finally:
        gc.enable()


async def test_what_a_thread_returns_or_raises_otherwise_is_passed_on() -> None:
    work = SlowWork().of("client")
    assert await in_thread(lambda: 7, work) == 7
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0, work)


class StepCounter(trio.abc.Instrument):
    """Counts how often trio goes on with one task."""

    def __init__(self) -> None:
        self.task = trio.lowlevel.current_task()
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += task is self.task


async def checkpoints_during(work: Callable[[], Awaitable[object]]) -> int:
    counter = StepCounter()
    trio.lowlevel.add_instrument(counter)
    await work()
    trio.lowlevel.remove_instrument(counter)
    return counter.count


@pytest.mark.parametrize(("cost", "times", "checkpoints"), [(ELEMENT, 1000, 5), (SLICE_UNITS, 4, 4), (0, 5000, 0)])
async def test_others_run_once_a_slice_whatever_a_unit_of_work_costs(cost: int, times: int, checkpoints: int) -> None:
    async def in_a_coroutine() -> None:
        budget = YieldBudget()
        for _ in range(times):
            await budget.spend(cost)

    def steps() -> Steps[None]:
        budget = YieldBudget()
        for _ in range(times):
            yield from budget.steps(cost)

    assert await checkpoints_during(in_a_coroutine) == checkpoints
    assert await checkpoints_during(lambda: run_to_end(steps())) == checkpoints


async def test_a_paced_generator_lets_others_run_at_each_of_its_yields() -> None:
    def work() -> Generator[None, None, int]:
        yield
        yield
        return 7

    results: list[int] = []

    async def run() -> None:
        results.append(await run_to_end(paced(work())))

    assert (await checkpoints_during(run), results) == (2, [7])


async def test_a_long_list_is_made_in_slices() -> None:
    found: list[int] = []

    async def make() -> None:
        found.extend(await listed(iter(range(1000)), YieldBudget()))

    assert await checkpoints_during(make) >= 1000 * ELEMENT // SLICE_UNITS
    assert found == list(range(1000))


async def test_a_budget_may_end_work_while_it_waits_for_its_next_slice() -> None:
    """What its client has left for, for example."""
    scope = trio.CancelScope()
    entered = 0

    @contextmanager
    def around() -> Iterator[None]:
        nonlocal entered
        entered += 1
        if entered == 3:
            scope.cancel()
        yield

    def in_steps() -> Steps[None]:
        budget = YieldBudget(around)
        while True:
            yield from budget.steps(SLICE_UNITS)

    async def in_a_coroutine() -> None:
        budget = YieldBudget(around)
        while True:
            await budget.spend(SLICE_UNITS)

    for work in (in_a_coroutine, lambda: run_to_end(in_steps())):
        entered, scope = 0, trio.CancelScope()
        with scope:
            await work()
        assert entered == 3
