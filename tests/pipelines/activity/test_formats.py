"""Guessing formats.

`compat_tests/spark/pipelines/activity/test_pipeline.py` tests with Spark that lines become the right events.
"""

from __future__ import annotations

import pytest

from kpybroker.pipelines.activity.formats import guess

COMMON = '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'
COMBINED = '::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a\\"b HTTP/1.0" 304 - "http://x/" "Mozilla/4.08 [en]"'
ACTIVITY = '{"timestamp": 1, "page": "/", "user": "u"}'
DPKG = "2026-11-21 01:38:54 status installed libc-bin:amd64 2.36-9+deb12u14"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([COMMON, COMBINED], "access"),
        ([ACTIVITY], "activity"),
        ([DPKG, DPKG, "", "noise"], "dpkg"),
        ([DPKG, "noise"], None),
        (['{"page": 1}', "[1]", "7"], None),
        ([], None),
    ],
)
def test_the_format_that_most_lines_have(lines: list[str], found: str | None) -> None:
    assert guess(lines) == found


def test_a_very_long_line_is_guessed_quickly() -> None:
    assert guess(['1 - - [x] "' + "\\a" * 100_000, "a " * 100_000, "[" * 100_000]) is None
