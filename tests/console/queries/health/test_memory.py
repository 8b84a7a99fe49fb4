"""What is remembered between two looks: brokers, whether a lag grows, when a disk is full."""

from __future__ import annotations

from kpybroker.console.queries.health.memory import REMEMBERED_MS, Kept, SeenBrokers, full_in_s, lag_of
from kpybroker.console.queries.samples import Point


def points(*values: float | None, step: float = 10.0) -> list[Point]:
    return [Point(number * step, value) for number, value in enumerate(values)]


def test_a_lag_grows_if_it_was_never_lower_than_at_the_begin() -> None:
    assert lag_of("g", points(5, 8, 7, 12)).grown == 7
    assert lag_of("g", points(5, 8, 4, 12)).grown is None  # it caught up in between
    assert lag_of("g", points(5, 5, 5)).grown is None
    assert lag_of("g", points(9, 5, 0)) == ("g", 0, None, 20.0)


def test_a_lag_is_not_said_to_grow_too_early_nor_over_a_gap() -> None:
    assert lag_of("g", points(5, 12)).grown is None
    assert lag_of("g", points(1, 2, 3, step=2)).grown is None
    assert lag_of("g", points(1, 2, 3, None, 4, 5)).seconds == 10.0
    assert lag_of("g", []) == ("g", 0, None, 0.0)


def test_only_the_last_minutes_count() -> None:
    assert lag_of("g", points(0, *(5 for _ in range(31)), 6)).grown == 1


def test_a_disk_is_full_at_the_rate_of_what_was_watched() -> None:
    assert full_in_s(points(1000, 900, 800, step=60)) == 800 * 120 / 200
    assert full_in_s(points(1000, 900, 800, step=10)) is None
    assert full_in_s(points(800, 900, 1000, step=60)) is None


def test_brokers_are_remembered_until_they_have_been_away_for_long() -> None:
    seen = SeenBrokers()
    seen.saw(frozenset({1, 2}), 0)
    assert seen.saw(frozenset({1}), 1000) == {1: 1000, 2: 0}
    assert seen.saw(frozenset({1}), REMEMBERED_MS + 1) == {1: REMEMBERED_MS + 1}


def test_a_result_serves_all_viewers_while_it_is_fresh() -> None:
    times, asked = [0.0], []

    def ask() -> int:
        asked.append(times[0])
        return len(asked)

    kept: Kept[int] = Kept(10.0, lambda: times[0])
    assert [kept.get(ask), kept.get(ask)] == [1, 1]
    times[0] = 10.0
    assert kept.get(ask) == 2
