"""When a fault acts: counted, by chance, for a time."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from kpybroker.control.rules.triggers import Trigger


def acts_on(trigger: Trigger, requests: int, chance: Callable[[], float] = lambda: 0.0) -> list[int]:
    """The numbers of the requests, from 1, on which it acts."""
    acted: list[int] = []
    for number in range(1, requests + 1):
        if trigger.fires(number, len(acted), 0.0, chance):
            acted.append(number)
    return acted


@pytest.mark.parametrize(
    ("trigger", "acted"),
    [
        (Trigger(), [1, 2, 3, 4, 5]),
        (Trigger(nth=3), [3]),
        (Trigger(times=2), [1, 2]),
        (Trigger(times=2, skip=1), [2, 3]),
        (Trigger(nth=2, skip=2), [4]),
        (Trigger(skip=4), [5]),
        (Trigger(probability=0.0), []),
    ],
    ids=str,
)
def test_which_requests(trigger: Trigger, acted: list[int]) -> None:
    assert acts_on(trigger, 5) == acted


def test_a_seed_repeats_its_draws() -> None:
    runs = [acts_on(Trigger(probability=0.3), 1000, random.Random(seed).random) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert 200 < len(runs[0]) < 400


def test_times_counts_what_chance_lets_through() -> None:
    draws = iter([0.9, 0.1, 0.9, 0.1, 0.1])
    assert acts_on(Trigger(times=2, probability=0.5), 5, lambda: next(draws)) == [2, 4]


def test_a_trigger_for_a_time() -> None:
    trigger = Trigger(for_ms=100)
    assert trigger.fires(1, 0, 99.9, random.random)
    assert not trigger.fires(2, 1, 100, random.random)


@pytest.mark.parametrize(
    ("trigger", "matches", "fired", "age_ms", "is_over"),
    [
        (Trigger(), 1000, 1000, 1e9, False),
        (Trigger(nth=3), 2, 0, 0, False),
        (Trigger(nth=3), 3, 1, 0, True),
        (Trigger(nth=3, skip=1), 3, 0, 0, False),
        (Trigger(times=2), 5, 1, 0, False),
        (Trigger(times=2), 2, 2, 0, True),
        (Trigger(for_ms=100), 0, 0, 99, False),
        (Trigger(for_ms=100), 0, 0, 100, True),
    ],
    ids=str,
)
def test_when_it_can_never_fire_again(trigger: Trigger, matches: int, fired: int, age_ms: float, is_over: bool) -> None:
    assert trigger.is_over(matches, fired, age_ms) is is_over
