"""Rates from remembered numbers, with a bound on what is remembered."""

from __future__ import annotations

from kpybroker.console.queries import samples
from kpybroker.console.queries.pages import Page
from kpybroker.console.queries.samples import Samples


def test_a_rate_is_over_the_last_half_minute() -> None:
    now = [0.0]
    kept = Samples(lambda: now[0])
    assert kept.rate("a") is None
    for at, value in ((0, 0), (100, 1000), (110, 1100), (120, 1400)):
        now[0] = at
        kept.add("a", value)
    assert kept.rate("a") == 20.0
    assert [point.value for point in kept.rates("a")] == [10.0, 10.0, 30.0]


def test_a_topic_that_was_made_again_has_no_negative_rate() -> None:
    now = [0.0]
    kept = Samples(lambda: now[0])
    kept.add("a", 1000)
    now[0] = 10
    kept.add("a", 0)
    assert kept.rate("a") == 0.0


def test_points_that_are_too_close_are_left_out_and_keys_are_bounded() -> None:
    now = [0.0]
    kept = Samples(lambda: now[0])
    kept.add("a", 1)
    kept.add("a", 2)
    assert len(kept.points("a")) == 1
    for number in range(samples.KEYS_MAX):
        kept.add(f"k{number}", 1)
    assert kept.points("a") == []


def test_pages_cover_a_list_without_a_gap() -> None:
    pages = [Page.of(101, number) for number in (1, 2, 3)]
    assert [(page.first, page.last) for page in pages] == [(0, 50), (50, 100), (100, 101)]
    assert Page.of(101, 99) == pages[2]
    assert Page.of(0, 1).pages == 1
