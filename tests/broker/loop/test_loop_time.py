"""Time on the loop is that of steps and of what they await, without the waiting; time is moved by hand."""

from __future__ import annotations

import pytest
import trio

from kpybroker.broker.loop import loop_time
from kpybroker.broker.loop.loop_time import LoopTime
from kpybroker.broker.loop.steps import Pending, Steps, Wait, run_steps

PASSED_NS = 7_000


class Time:
    def __init__(self) -> None:
        self.now_ns = 1

    def __call__(self) -> int:
        return self.now_ns

    def takes(self, nanoseconds: int) -> None:
        self.now_ns += nanoseconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(loop_time, "perf_counter_ns", made)
    return made


def test_what_steps_wait_for_is_not_counted_and_what_they_await_is_where_it_runs(time: Time) -> None:
    counted = LoopTime()

    async def awaited() -> int:
        time.takes(10)
        await trio.lowlevel.checkpoint()  # others run
        time.takes(200)
        return 3

    def steps() -> Steps[int]:
        time.takes(1)
        found: int = yield awaited
        time.takes(4_000)
        return found

    async def main() -> None:
        outcome = run_steps(counted.around(steps()))
        assert isinstance(outcome, Pending)
        time.takes(PASSED_NS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            assert await outcome == 3

    async def others() -> None:
        time.takes(PASSED_NS)

    trio.run(main)
    assert counted.take_ns() == 4_211
    assert counted.take_ns() == 0


def test_steps_that_wait_are_suspended_while_they_are_counted(time: Time) -> None:
    counted, wait = LoopTime(), Wait(1.0)

    def steps() -> Steps[str]:
        time.takes(1)
        yield wait
        time.takes(20)
        return "response"

    outcome = run_steps(counted.around(steps()))
    assert isinstance(outcome, Pending)
    assert outcome.wait is wait
    time.takes(PASSED_NS)
    wait.end()
    assert outcome.resume() == "response"
    assert counted.take_ns() == 21


def test_an_error_of_what_is_awaited_is_thrown_into_the_steps(time: Time) -> None:
    counted = LoopTime()

    async def failing() -> None:
        time.takes(5)
        raise ValueError("it failed")

    def steps() -> Steps[str]:
        try:
            yield failing
        except ValueError as error:
            return str(error)
        return "no error"

    async def main() -> str:
        outcome = run_steps(counted.around(steps()))
        assert isinstance(outcome, Pending)
        return await outcome

    assert trio.run(main) == "it failed"
    assert counted.take_ns() == 5


def test_what_is_taken_within_a_step_is_not_counted_again(time: Time) -> None:
    counted, taken = LoopTime(), []

    def steps() -> Steps[None]:
        time.takes(30)
        taken.append(counted.take_ns())
        time.takes(4)
        return
        yield

    run_steps(counted.around(steps()))
    assert (taken, counted.take_ns()) == ([30], 4)
