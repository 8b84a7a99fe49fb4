"""Lines that strangers cause."""

from __future__ import annotations

from kpybroker.core.doors.seldom import Seldom


def test_the_first_line_is_said_and_then_one_a_period_with_the_count_of_the_others() -> None:
    lines = Seldom(60)
    said = {now: unsaid for now in range(180) if (unsaid := lines.may_say(now)) is not None}
    assert said == {0: 0, 60: 59, 120: 59}
    assert lines.may_say(1_000) == 59
