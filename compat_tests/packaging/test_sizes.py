"""The table of what an installation weighs is that of this environment, and has every extra."""

from __future__ import annotations

import pytest

from compat_tests.packaging import sizes

OFF_BY_MAX = 0.3
"""Of a row: other versions of packages may be here than where it was written."""


def test_every_extra_has_a_row_and_a_purpose() -> None:
    rows = sizes.written()
    assert set(rows) == {"kpybroker itself", "its dependencies", *(f"`{extra}`" for extra in sizes.extras())}
    text = sizes.PAGE.read_text(encoding="utf-8").partition(sizes.END)[2]
    for extra in sizes.extras():
        assert f"| `{extra}` |" in text, f"who needs {extra}"


def test_the_sizes_are_those_that_are_written() -> None:
    rows = sizes.written()
    measured = {what: megabytes for what, _, megabytes in sizes.rows()}
    known = [what for what, megabytes in measured.items() if megabytes is not None and rows[what] is not None]
    assert len(known) >= 8
    for what in known:
        assert measured[what] == pytest.approx(rows[what], rel=OFF_BY_MAX, abs=1), what


def test_what_an_extra_shares_with_the_core_counts_once() -> None:
    core = sizes.closure(["trio"])
    assert "sortedcontainers" in core
    assert sizes.weight(core) == pytest.approx(sum(sizes.weight({name}) for name in core))
