"""Waiting for a condition: the first true result, or an error that says what was there."""

from __future__ import annotations

import pytest

from kpybroker.testing import WaitTimeout, wait_for


def test_the_first_true_result_is_returned() -> None:
    results = iter(["", "", "yes", "no"])
    assert wait_for(lambda: next(results), 10) == "yes"


def test_an_assertion_that_fails_counts_as_false() -> None:
    numbers = iter(range(3))

    def condition() -> bool:
        assert next(numbers) == 2
        return True

    assert wait_for(condition, 10)


def test_any_other_exception_is_raised_at_once() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 // 0, 10)


def test_a_failure_names_what_was_waited_for_and_what_was_seen() -> None:
    def two_records() -> list[str]:
        return []

    with pytest.raises(WaitTimeout, match=r"two_records did not happen within 0.01 s; seen instead: \[\]"):
        wait_for(two_records, 0.01)
    with pytest.raises(WaitTimeout, match=r"the condition did not happen .* seen instead: 0"):
        wait_for(lambda: 0, 0.01)
    with pytest.raises(WaitTimeout, match=r"^rain did not happen .* seen instead: sun\nfix: look at"):
        wait_for(lambda: 0, 0.01, "rain", lambda: "sun")


def test_a_failure_shows_the_last_assertion() -> None:
    def condition() -> bool:
        raise AssertionError("three\n  records")

    with pytest.raises(WaitTimeout, match="seen instead: three records"):
        wait_for(condition, 0.01)


def test_the_condition_is_looked_at_once_more_when_the_time_is_over() -> None:
    assert wait_for(lambda: True, 0) is True
