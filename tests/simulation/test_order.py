"""The canary of trio's private order of tasks: with a seed it is that seed's, without one it is as before."""

from __future__ import annotations

import random

import trio
from trio._core import _run

from tests.simulation.seams.order import seeded_order, task_names

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
