"""`MovableClock`: timers run in order and at their time, periodic tasks a bounded number of times."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import pytest
import trio
import trio.testing

from kpybroker.control.levers.movable_clock import PERIODS_MAX, MovableClock

HOUR_MS = 3_600_000

rest = trio.testing.wait_all_tasks_blocked


async def note_at(clock: MovableClock, deadline: float, notes: list[tuple[float, int]]) -> None:
    with clock.move_on_at(deadline):
        await trio.sleep_forever()
    notes.append((clock.monotonic(), clock.time_ms()))


async def test_timers_run_in_the_order_of_their_deadlines_each_at_its_time() -> None:
    clock = MovableClock()
    began = clock.monotonic()
    wanted = [began + seconds for seconds in random.Random(7).sample(range(1, 3600), 200)]
    notes: list[tuple[float, int]] = []
    async with trio.open_nursery() as nursery:
        for deadline in wanted:
            nursery.start_soon(note_at, clock, deadline, notes)
        await rest()
        await clock.advance(HOUR_MS, rest)
    assert [at for at, _ in notes] == sorted(wanted)
    walls = [wall for _, wall in notes]
    assert [round((at - notes[0][0]) * 1000) for at, _ in notes] == pytest.approx(
        [wall - walls[0] for wall in walls], abs=1
    )


async def test_a_timer_that_another_one_sets_runs_too_if_it_is_due() -> None:
    clock = MovableClock()
    began, notes = clock.monotonic(), list[tuple[float, int]]()

    async def chain() -> None:
        for seconds in (10, 20, 50, 61):
            await note_at(clock, began + seconds, notes)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(chain)
        nursery.start_soon(note_at, clock, began + 30, notes)
        await rest()
        await clock.advance(60_000, rest)
        assert [round(at - began) for at, _ in notes] == [10, 20, 30, 50]
        await clock.advance(1_000, rest)
        assert [round(at - began) for at, _ in notes] == [10, 20, 30, 50, 61]


async def test_what_a_timer_sets_off_ends_before_the_time_goes_on() -> None:
    clock = MovableClock()
    notes: list[float] = []

    async def work() -> None:
        with clock.move_on_at(began + 1):
            await trio.sleep_forever()
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        notes.append(clock.monotonic() - began)

    began = clock.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await rest()
        await clock.advance(HOUR_MS, rest)
        assert notes == [1.0]


async def test_the_time_that_an_advance_ends_at_is_exact_and_the_time_never_goes_back() -> None:
    clock = MovableClock()
    seen = [(clock.monotonic(), clock.time_ms())]

    async def look() -> None:
        seen.append((clock.monotonic(), clock.time_ms()))
        await rest()

    began = clock.time_ms()
    await clock.advance(HOUR_MS, look)
    assert clock.time_ms() - began - HOUR_MS in range(1000)
    seen.append((clock.monotonic(), clock.time_ms()))
    assert seen == sorted(seen)
    assert 0 <= HOUR_MS - clock.ahead_ms < 1000  # what the advance itself took is not added


async def test_a_periodic_task_runs_a_bounded_number_of_times_and_once_at_the_end() -> None:
    clock = MovableClock()
    runs: list[float] = []

    async def periodic(seconds: float) -> None:
        while True:
            await clock.pause(seconds)
            runs.append(clock.monotonic())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(periodic, 0.5)
        await rest()
        began = clock.monotonic()
        await clock.advance(25 * HOUR_MS, rest)
        assert PERIODS_MAX <= len(runs) <= PERIODS_MAX + 2
        assert runs == sorted(runs)
        assert runs[-1] - began == pytest.approx(25 * 3600, abs=1)
        nursery.cancel_scope.cancel()


async def test_periods_that_are_longer_than_a_hundredth_of_the_advance_are_nearly_kept() -> None:
    clock = MovableClock()
    runs: list[float] = []

    async def periodic() -> None:
        while True:
            await clock.pause(600)
            runs.append(clock.monotonic())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(periodic)
        await rest()
        await clock.advance(2 * HOUR_MS, rest)
        gaps = [after - before for before, after in pairwise(runs)]
        assert all(600 <= gap <= 600 + 7200 / PERIODS_MAX for gap in gaps[:-1])
        assert len(runs) in (11, 12, 13)
        nursery.cancel_scope.cancel()


async def test_without_an_advance_timers_and_pauses_end_by_themselves(autojump_clock: trio.testing.MockClock) -> None:
    clock = MovableClock()
    await clock.advance(HOUR_MS, rest)
    for wait in (partial(clock.pause, 5), partial(note_at, clock, clock.monotonic() + 10, [])):
        began = trio.current_time()
        await wait()
        assert trio.current_time() - began == pytest.approx(5, abs=0.01)


async def test_a_timer_that_was_set_before_an_advance_keeps_its_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = MovableClock()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note_at, clock, clock.monotonic() + 90, [])
        await rest()
        await clock.advance(60_000, trio.lowlevel.checkpoint)
    assert trio.current_time() - began == pytest.approx(30, abs=0.01)


async def test_a_deadline_that_is_over_ends_the_block_at_once() -> None:
    clock = MovableClock()

    async def at_once() -> None:
        with clock.move_on_at(clock.monotonic() - 1):
            await trio.sleep_forever()

    with trio.fail_after(60):
        await at_once()
        await clock.advance(1000, at_once)


async def test_advances_are_made_one_after_the_other_and_one_that_is_cancelled_leaves_a_clock_that_runs() -> None:
    clock = MovableClock()
    began = clock.time_ms()
    with trio.move_on_after(0) as scope:
        await clock.advance(HOUR_MS, trio.sleep_forever)
    assert scope.cancelled_caught
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(clock.advance, HOUR_MS, rest)
    assert 0 <= clock.time_ms() - began - 3 * HOUR_MS < HOUR_MS // 10
