"""Where to begin and to end: `start`, `end`, `5`, `+5`, `-5`, `@TIMESTAMP`, and ranges of two of these.

The grammar of `topic consume -o`, of rpk's and kcat's, and the parts of it that `group seek --to` and `topic trim` use.

| position | is |
|---|---|
| start, end | the first offset, the offset that the next record gets |
| 5 | offset 5 |
| +5, -5 | five after the first, five before the end |
| @T | the first record whose timestamp is T or later |

A range is `FROM:TO`, with TO excluded; either may be left out. T is a time in ISO 8601 (UTC unless it says otherwise),
milliseconds since 1970, or a duration before now: `@-1h`, `@-30m`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

TIMES: Final = "@2026-01-31T12:00, @1769860800000 (milliseconds) or @-1h"
FORMS: Final = f"start, end, 5, +5 (after the start), -5 (before the end), {TIMES}"
"""What can be written, for errors."""

INT64_MAX: Final = 2**63 - 1
INT64_DIGITS: Final = 19
UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class BadOffset(ValueError):
    """A text that is no position; the text says why."""


class Position(NamedTuple):
    """`kind` is start, end, offset, after_start, before_end or timestamp; `value` its number, milliseconds for one."""

    kind: str
    value: int = 0


START: Final = Position("start")
END: Final = Position("end")


class Span(NamedTuple):
    """Where reading begins, and where it ends; None for never."""

    begin: Position
    end: Position | None = None


class Bounds(NamedTuple):
    """A partition's first offset and the end of what can be read."""

    start: int
    end: int


def parse_position(text: str, now_ms: int) -> Position:
    """One position. Raises BadOffset."""
    word = text.strip().lower()
    if word in ("start", "beginning", "earliest", "oldest"):
        return START
    if word in ("end", "latest", "newest"):
        return END
    if word.startswith("@"):
        return Position("timestamp", parse_timestamp(text.strip()[1:], now_ms))
    match = re.fullmatch(r"([+-]?)(\d+)", word, re.ASCII)
    if match is None:
        raise BadOffset(f"{text!r} is no offset")
    return Position({"": "offset", "+": "after_start", "-": "before_end"}[match[1]], _int64(text, match[2]))


def parse_span(text: str, now_ms: int) -> Span:
    """A position, or a range of two. Raises BadOffset."""
    begin, colon, end = _split(text)
    if not colon:
        return Span(parse_position(text, now_ms))
    return Span(
        parse_position(begin, now_ms) if begin.strip() else START,
        parse_position(end, now_ms) if end.strip() else None,
    )


def _split(text: str) -> tuple[str, str, str]:
    """At the colon of a range, and not at one of a time of day."""
    if _is_whole(text):
        return text, "", ""
    for match in re.finditer(":", text):
        begin, end = text[: match.start()], text[match.end() :]
        if _is_whole(begin) and _is_whole(end):
            return begin, ":", end
    return text, "", ""


def _is_whole(text: str) -> bool:
    """Whether it can be one side of a range."""
    try:
        if text.strip():
            parse_position(text, 0)
    except BadOffset:
        return False
    return True


def parse_timestamp(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a time; 0 for one before that: numbers below 0 are words of the protocol. Raises
    BadOffset.
    """
    text = text.strip()
    if re.fullmatch(r"\d{5,}", text, re.ASCII):
        return _int64(f"@{text}", text)
    match = re.fullmatch(r"-(\d+)([smhd])", text, re.ASCII)
    if match:
        return max(0, now_ms - _int64(f"@{text}", match[1], UNITS[match[2]] * 1000))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadOffset(f"@{text} is no time") from None
    return max(0, round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000))


def _int64(text: str, digits: str, unit: int = 1) -> int:
    """The number in `unit`s. Raises BadOffset for one that the protocol has no room for."""
    if len(digits) > INT64_DIGITS or int(digits) * unit > INT64_MAX:
        raise BadOffset(f"{text.strip()[:100]!r} is beyond {INT64_MAX}")
    return int(digits) * unit


def resolve(position: Position, bounds: Bounds, at_time: Callable[[int], int]) -> int:
    """The offset of a position in a partition, at least its first; `at_time` gives a timestamp's, or the end.

    An offset beyond the end stays as it is: it may be reached later. `within` brings it back.
    """
    offset = {
        "start": lambda: bounds.start,
        "end": lambda: bounds.end,
        "offset": lambda: position.value,
        "after_start": lambda: bounds.start + position.value,
        "before_end": lambda: bounds.end - position.value,
        "timestamp": lambda: at_time(position.value),
    }[position.kind]()
    return max(bounds.start, offset)


def within(offset: int, bounds: Bounds) -> int:
    """The offset, or the nearest that the partition has."""
    return max(bounds.start, min(bounds.end, offset))
