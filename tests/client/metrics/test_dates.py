"""Patterns of SimpleDateFormat; what Java writes for them was seen from Java 17."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.metrics import report
from kpybroker.client.metrics.dates import date_format

WHEN = datetime(2024, 2, 3, 0, 5, 9, 7654, timezone(timedelta(hours=5, minutes=30), "IST"))
AFTERNOON = datetime(2024, 12, 31, 13, 45, 59, 999_999, UTC)


@pytest.mark.parametrize(
    ("pattern", "first", "second"),
    [
        ("yyyy-MM-dd HH:mm:ss,SSS", "2024-02-03 00:05:09,007", "2024-12-31 13:45:59,999"),
        ("y yy yyy yyyyy M MMM MMMM L", "2024 24 2024 02024 2 Feb February 2", "2024 24 2024 02024 12 Dec December 12"),
        ("d D DDDD E EEE EEEE u", "3 34 0034 Sat Sat Saturday 6", "31 366 0366 Tue Tue Tuesday 2"),
        ("h K k a hh KK kk", "12 0 24 AM 12 00 24", "1 1 13 PM 01 01 13"),
        ("S SS m s", "7 07 5 9", "999 999 45 59"),
        ("G z Z X XX XXX", "AD IST +0530 +05 +0530 +05:30", "AD UTC +0000 Z Z Z"),
        ("'o''clock' '' 'y'", "o'clock ' y", "o'clock ' y"),
        ("yyyy-MM-dd'T'HH:mm", "2024-02-03T00:05", "2024-12-31T13:45"),
        ("", "", ""),
        ("«é»", "«é»", "«é»"),
    ],
)
def test_a_time_is_written_as_java_does(pattern: str, first: str, second: str) -> None:
    written = date_format(pattern)
    assert (written(WHEN), written(AFTERNOON)) == (first, second)


@pytest.mark.parametrize(
    ("pattern", "cause"), [("ww", "letter w"), ("b", "letter b"), ("'a", "a quote without an end")]
)
def test_what_is_no_pattern_is_said(pattern: str, cause: str) -> None:
    with pytest.raises(CommandError, match=cause) as caught:
        date_format(pattern)
    assert caught.value.exit_code == 2


def test_keys_are_in_the_order_of_java() -> None:
    assert report.in_order(["b", "a", "\uffff", "\U0001f600", "a"]) == ["a", "b", "\U0001f600", "\uffff"]
