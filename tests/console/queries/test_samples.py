"""Rates from remembered numbers and their own times, with gaps, and with a bound on what is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.console.queries import samples
from kpybroker.console.queries.pages import Page
from kpybroker.console.queries.samples import GAP_S_MIN, RANGES, Point, Samples


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_rate_is_over_the_last_ten_seconds(clock: Clock) -> None:
    kept = Samples(clock)
    assert kept.rate("a") is None
    for at, value in ((0, 0), (10, 100), (20, 400), (25, 450)):
        clock.at = 1000.0 + at
        kept.add("a", value)
    assert kept.rates("a") == [Point(1010.0, 10.0), Point(1020.0, 30.0), Point(1025.0, 10.0)]
    assert kept.rate("a") == 10.0
    clock.at += samples.RATE_GAP_S + 1
    assert kept.rate("a") is None


@given(st.lists(st.floats(0.05, 3.0), min_size=30, max_size=120))
def test_a_steady_load_is_a_flat_line_however_often_it_is_read(pauses: list[float]) -> None:
    clock = Clock()
    kept = Samples(clock)
    for pause in pauses:
        clock.at += pause
        kept.add("a", 15 * clock.at, clock.at)
        kept.add("a", 15 * clock.at, clock.at)  # another viewer of the same reading
    for name in RANGES:
        assert all(point.value == pytest.approx(15.0) for point in kept.rates("a", name))


def test_a_time_without_readings_is_a_gap(clock: Clock) -> None:
    kept = Samples(clock)
    for at in (0, 2, 4, 100, 102):
        clock.at = 1000.0 + at
        kept.add("a", at)
    assert [point.value for point in kept.rates("a")] == [1.0, 1.0, None, 1.0]
    assert [point.value for point in kept.points("a")] == [0, 2, 4, None, 100, 102]


def test_a_counter_that_began_again_is_a_gap(clock: Clock) -> None:
    kept = Samples(clock)
    for value in (1000, 1010, 0, 10):
        kept.add("a", value)
        clock.at += 5
    assert [point.value for point in kept.rates("a")] == [2.0, None, 2.0]


def test_a_clock_that_went_back_begins_again(clock: Clock) -> None:
    kept = Samples(clock)
    kept.add("a", 1)
    clock.at -= 1
    kept.add("a", 2)
    assert [point.value for point in kept.points("a")] == [1]
    clock.at -= 3600
    kept.add("a", 3)
    assert [point.value for point in kept.points("a")] == [3]


@pytest.mark.parametrize("name", RANGES)
def test_a_range_reaches_back_and_is_bounded(clock: Clock, name: str) -> None:
    kept = Samples(clock)
    step = 1.0 if name == "15m" else 5.0
    for number in range(int(2.5 * RANGES[name].seconds / step)):
        kept.add("a", number)
        clock.at += step
    points = kept.points("a", name)
    assert clock.at - points[0].at <= RANGES[name].seconds
    assert clock.at - points[0].at > RANGES[name].seconds - 2 * RANGES[name].step_s - step
    assert len(points) <= RANGES[name].seconds / RANGES[name].step_s + 2
    assert all(point.value is not None for point in points)
    assert RANGES[name].gap_s >= GAP_S_MIN


def test_keys_are_bounded(clock: Clock) -> None:
    kept = Samples(clock)
    kept.add("a", 1)
    for number in range(samples.KEYS_MAX):
        kept.add(f"k{number}", 1)
    assert kept.points("a") == []
    assert not kept.is_fresh("a", 10)
    assert kept.is_fresh("k1", 10)


def test_pages_cover_a_list_without_a_gap() -> None:
    pages = [Page.of(101, number) for number in (1, 2, 3)]
    assert [(page.first, page.last) for page in pages] == [(0, 50), (50, 100), (100, 101)]
    assert Page.of(101, 99) == pages[2]
    assert Page.of(0, 1).pages == 1
