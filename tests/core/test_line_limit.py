"""A client has a budget of lines a minute; what exceeds it is counted, once, and the table is bounded."""

from __future__ import annotations

from kpybroker.core.line_limit import LINES_MAX, SUBJECTS_MAX, WINDOW_S, LineLimit


def written(limit: LineLimit, subject: str, now: float, lines: int, *, is_warning: bool = True) -> int:
    return sum(limit.allows(subject, now, is_warning=is_warning) for _ in range(lines))


def test_what_exceeds_the_budget_of_a_minute_is_counted_once() -> None:
    limit = LineLimit()
    assert written(limit, "a", 0, 1000) == LINES_MAX
    assert written(limit, "b", 1, 10) == 10
    assert limit.take_counts(WINDOW_S - 1) == []
    assert limit.take_counts(WINDOW_S) == [("a", 1000 - LINES_MAX)]
    assert limit.take_counts(WINDOW_S + 1000) == []
    assert written(limit, "a", WINDOW_S + 1000, 1000) == LINES_MAX


def test_a_window_that_is_over_is_counted_also_if_its_client_goes_on() -> None:
    limit = LineLimit()
    written(limit, "a", 0, LINES_MAX + 5)
    assert written(limit, "a", WINDOW_S, LINES_MAX + 7) == LINES_MAX
    assert limit.take_counts(WINDOW_S) == [("a", 5)]
    assert limit.take_counts(2 * WINDOW_S) == [("a", 7)]


def test_a_part_of_the_budget_is_for_warnings() -> None:
    limit = LineLimit()
    assert written(limit, "a", 0, 1000, is_warning=False) == 67
    assert written(limit, "a", 0, 1000) == 33
    assert written(limit, "a", 0, 1, is_warning=False) == 0


def test_there_may_be_another_limit_or_none() -> None:
    limit = LineLimit()
    limit.lines_max = 3
    assert written(limit, "a", 0, 10, is_warning=False) == 2
    assert written(limit, "a", 0, 10) == 1
    limit.lines_max = 0
    assert written(limit, "a", 0, 1000) == 1000


def test_a_client_of_many_addresses_takes_no_more_than_a_table() -> None:
    limit = LineLimit()
    written(limit, "first", 0, LINES_MAX + 1)
    for number in range(10 * SUBJECTS_MAX):
        limit.allows(f"host-{number}", 1, is_warning=True)
    assert len(limit._windows) == SUBJECTS_MAX
    assert limit.take_counts(2) == [("first", 1)]
    assert limit.take_counts(1000) == []
