"""Positions, ranges and times."""

from __future__ import annotations

import pytest

from kpybroker.client.records.offsets import (
    END,
    START,
    BadOffset,
    Bounds,
    Position,
    Span,
    parse_position,
    parse_span,
    parse_timestamp,
    resolve,
    within,
)

NOW_MS = 1_800_000_000_000
NOON_MS = 1_769_860_800_000  # 2026-01-31T12:00Z
BOUNDS = Bounds(10, 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", START),
        ("Beginning", START),
        ("end", END),
        ("latest", END),
        ("5", Position("offset", 5)),
        ("+5", Position("after_start", 5)),
        ("-5", Position("before_end", 5)),
        ("@2026-01-31T12:00", Position("timestamp", NOON_MS)),
        ("@2026-01-31T13:00+01:00", Position("timestamp", NOON_MS)),
        ("@1769860800000", Position("timestamp", NOON_MS)),
        ("@-2h", Position("timestamp", NOW_MS - 7_200_000)),
    ],
)
def test_a_position(text: str, expected: Position) -> None:
    assert parse_position(text, NOW_MS) == expected
    assert parse_span(text, NOW_MS) == Span(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5:9", Span(Position("offset", 5), Position("offset", 9))),
        (":end", Span(START, END)),
        ("-5:", Span(Position("before_end", 5), None)),
        ("@2026-01-31T12:00:end", Span(Position("timestamp", NOON_MS), END)),
        ("@-2h:@-1h", Span(Position("timestamp", NOW_MS - 7_200_000), Position("timestamp", NOW_MS - 3_600_000))),
        (
            "@2026-01-31T12:00:@2026-01-31T12:00:01",
            Span(Position("timestamp", NOON_MS), Position("timestamp", NOON_MS + 1000)),
        ),
    ],
)
def test_a_range(text: str, expected: Span) -> None:
    assert parse_span(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["", "x", "5.0", "--5", "@", "@x", "@12", "5:9:12", "5:x", "٣"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(BadOffset):
        parse_span(text, NOW_MS)


def test_a_date_is_midnight_in_utc() -> None:
    assert parse_timestamp("2026-01-31", NOW_MS) == NOON_MS - 43_200_000


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (START, 10),
        (END, 20),
        (Position("offset", 15), 15),
        (Position("offset", 5), 10),
        (Position("offset", 25), 25),
        (Position("after_start", 3), 13),
        (Position("before_end", 3), 17),
        (Position("before_end", 30), 10),
        (Position("timestamp", 7), 12),
    ],
)
def test_a_position_in_a_partition(position: Position, expected: int) -> None:
    assert resolve(position, BOUNDS, {7: 12}.__getitem__) == expected


def test_within_is_the_nearest_offset() -> None:
    assert [within(offset, BOUNDS) for offset in (5, 15, 25)] == [10, 15, 20]


@pytest.mark.parametrize(
    "text", ["1969-12-31T23:59:59.999+00:00", "1960-01-01", "0001-01-01T00:00+23:59", "-99999999d"]
)
def test_a_time_before_1970_is_the_first_there_is(text: str) -> None:
    """-1 and -2 are the end and the start to the protocol, and other numbers below 0 an error."""
    assert parse_timestamp(text, NOW_MS) == 0
