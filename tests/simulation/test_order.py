"""The canary of trio's private order of tasks: with a seed it is that seed's, without one it is as before."""

from __future__ import annotations

import random

import trio
import trio.testing
from trio._core import _run

from tests.simulation.seams.order import Pauses, seeded_order, task_names

TASKS = 12


def order_of_tasks() -> list[int]:
    """Twelve tasks that are ready at once, each of which notes its number."""
    noted: list[int] = []

    async def note(number: int) -> None:
        noted.append(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(TASKS):
                nursery.start_soon(note, number)

    trio.run(main)
    return noted


def seeded(seed: int) -> list[int]:
    with seeded_order(seed):
        return order_of_tasks()


def test_the_order_of_tasks_is_that_of_the_seed() -> None:
    orders = {seed: seeded(seed) for seed in range(5)}
    assert {seed: seeded(seed) for seed in range(5)} == orders
    assert len({tuple(order) for order in orders.values()}) == 5
    assert all(sorted(order) == list(range(TASKS)) for order in orders.values())


def test_trio_is_as_before_after_a_world() -> None:
    before, switch = _run._r.getstate(), _run._ALLOW_DETERMINISTIC_SCHEDULING
    seeded(1)
    assert _run._r.getstate() == before
    assert switch == _run._ALLOW_DETERMINISTIC_SCHEDULING
    assert isinstance(_run._r, random.Random)


async def test_tasks_are_named_by_what_they_run(autojump_clock: trio.testing.MockClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever, name="one that sleeps")
        await trio.testing.wait_all_tasks_blocked()
        assert "one that sleeps" in task_names()
        nursery.cancel_scope.cancel()


def test_a_task_that_is_paused_does_not_run_nor_do_those_below_it_and_others_do() -> None:
    noted: list[tuple[float, str]] = []

    async def tick(name: str) -> None:
        while True:
            await trio.sleep(1)
            noted.append((trio.current_time(), name))

    async def above(task_status: trio.TaskStatus[trio.lowlevel.Task]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick, "below")
            task_status.started(trio.lowlevel.current_task())
            await tick("above")

    async def main(pauses: Pauses) -> None:
        async with trio.open_nursery() as nursery:
            root = await nursery.start(above)
            nursery.start_soon(tick, "other")
            await trio.sleep(1.5)
            pauses.pause(root)
            await trio.sleep(2)
            noted.append((trio.current_time(), "goes on"))
            pauses.go_on(root)
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()

    with seeded_order(1) as pauses:
        trio.run(main, pauses, clock=trio.testing.MockClock(autojump_threshold=0))
    assert sorted(noted) == [
        (1.0, "above"),
        (1.0, "below"),
        (1.0, "other"),
        (2.0, "other"),
        (3.0, "other"),
        (3.5, "above"),
        (3.5, "below"),
        (3.5, "goes on"),
    ]


def test_what_is_paused_at_the_end_of_a_world_ends_too() -> None:
    async def main(pauses: Pauses) -> None:
        async with trio.open_nursery() as nursery:

            async def sleep(task_status: trio.TaskStatus[trio.lowlevel.Task]) -> None:
                task_status.started(trio.lowlevel.current_task())
                await trio.sleep_forever()

            pauses.pause(await nursery.start(sleep))
            nursery.cancel_scope.cancel()
            pauses.end()

    with seeded_order(1) as pauses:
        trio.run(main, pauses, clock=trio.testing.MockClock(autojump_threshold=0))
