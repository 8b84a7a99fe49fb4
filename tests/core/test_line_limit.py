"""A client has a budget of lines a minute; what exceeds it is counted, once, and the table is bounded."""

from __future__ import annotations

from kpybroker.core.line_limit import LINES_MAX, SUBJECTS_MAX, WINDOW_S, LineLimit, Seldom


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


# --- lines that strangers cause


def test_the_first_line_is_said_and_then_one_a_period_with_the_count_of_the_others() -> None:
    lines = Seldom(60)
    said = {now: unsaid for now in range(180) if (unsaid := lines.may_say(now)) is not None}
    assert said == {0: 0, 60: 59, 120: 59}
    assert lines.may_say(1_000) == 59


def test_each_kind_of_line_has_a_count_of_its_own() -> None:
    lines = Seldom(60)
    assert [lines.may_say(0, "a"), lines.may_say(1, "b"), lines.may_say(2, "a"), lines.may_say(3, "b")] == [
        0,
        0,
        None,
        None,
    ]
    assert [lines.may_say(4, "b"), lines.may_say(61, "a"), lines.may_say(62, "b")] == [None, 1, 2]


def test_kinds_without_an_end_take_no_more_than_a_table() -> None:
    lines = Seldom(60)
    for number in range(10 * SUBJECTS_MAX):
        assert lines.may_say(1, f"kind {number}") == 0
        assert lines.may_say(1, f"kind {number}") is None
    assert len(lines._limit._windows) == SUBJECTS_MAX
    assert len(lines._limit._counts) <= 1
