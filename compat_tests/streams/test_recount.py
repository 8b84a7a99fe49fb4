"""What the Streams application is compared with, on a few events by hand."""

from __future__ import annotations

from compat_tests.streams.recount import Event, count, join, visit

CLICKS = [
    Event("a", 1_000, "page-0/1"),
    Event("a", 5_000, "page-1/2"),
    Event("b", 9_999, "page-0/3"),
    Event("c", 1, "page-0/4"),
]
BUYS = [Event("a", 3_000, "buy-1"), Event("b", 10_000, "buy-2"), Event("a", 3_001, "buy-3"), Event("c", 1, "buy-4")]
VISITS = [
    Event("a", 1_000, "page-0/1/free"),
    Event("a", 5_000, "page-1/2/free"),
    Event("b", 9_999, "page-0/3/paid"),
]


def test_a_visit_has_the_plan_of_its_user_and_unknown_users_make_none() -> None:
    assert visit(CLICKS, {"a": "free", "b": "paid"}) == VISITS


def test_a_pair_is_of_one_user_and_close_in_time_and_as_old_as_its_younger_half() -> None:
    assert join(VISITS, BUYS, 2_000) == [
        Event("a", 3_000, "page-0/1/free+buy-1"),
        Event("a", 5_000, "page-1/2/free+buy-1"),
        Event("a", 5_000, "page-1/2/free+buy-3"),
        Event("b", 10_000, "page-0/3/paid+buy-2"),
    ]


def test_pairs_are_counted_by_page_and_window() -> None:
    pairs = join(VISITS, BUYS, 2_000)
    assert count(pairs, 10_000) == {"page-0@0": 1, "page-1@0": 2, "page-0@10000": 1}
