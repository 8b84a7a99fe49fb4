"""Patterns of Java's `SimpleDateFormat`, as `--date-format` takes them: in English, in the machine's time zone.

Not known: the weeks of a year or month, which depend on a country (`Y w W F`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

from kpybroker.client.connect.errors import usage

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SHORT: Final = 3
Part = Callable[[datetime], str]

_PIECES: Final = re.compile(r"''|'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z'])")


def date_format(pattern: str) -> Part:
    """A function that writes a time which knows its zone. Raises CommandError."""
    parts: list[Part] = []
    position = 0
    while position < len(pattern):
        match = _PIECES.match(pattern, position)
        if match is None:
            raise usage(f"--date-format {pattern} has a quote without an end", "write '' for a quote")
        parts.append(_part(match))
        position = match.end()
    return lambda when: "".join(part(when) for part in parts)


def _part(match: re.Match[str]) -> Part:
    quoted, run, letter, other = match.groups()
    if run is None:
        text = other or (quoted.replace("''", "'") if quoted is not None else "'")
        return lambda when: text
    count = len(run)
    if letter in _NUMBERS:
        number = _NUMBERS[letter]
        return lambda when: str(number(when)).zfill(count)
    if letter in _TEXTS:
        written = _TEXTS[letter]
        return lambda when: written(when, count)
    known = " ".join(sorted([*_NUMBERS, *_TEXTS], key=str.lower))
    raise usage(f"--date-format has the letter {letter}, which is not known", f"use {known}; text goes between quotes")


_NUMBERS: Final[dict[str, Callable[[datetime], int]]] = {
    "d": lambda when: when.day,
    "D": lambda when: when.timetuple().tm_yday,
    "u": lambda when: when.isoweekday(),
    "H": lambda when: when.hour,
    "k": lambda when: when.hour or 24,
    "K": lambda when: when.hour % 12,
    "h": lambda when: when.hour % 12 or 12,
    "m": lambda when: when.minute,
    "s": lambda when: when.second,
    "S": lambda when: when.microsecond // 1000,
}


def _year(when: datetime, count: int) -> str:
    return f"{when.year % 100:02d}" if count == 2 else str(when.year).zfill(count)


def _month(when: datetime, count: int) -> str:
    if count < SHORT:
        return str(when.month).zfill(count)
    return _name(MONTHS[when.month - 1], count)


def _name(name: str, count: int) -> str:
    return name if count > SHORT else name[:SHORT]


def _offset(when: datetime) -> str:
    return f"{when:%z}"[:5]


def _iso_offset(when: datetime, count: int) -> str:
    offset = _offset(when)
    if offset == "+0000":
        return "Z"
    return {1: offset[:3], 2: offset}.get(count, f"{offset[:3]}:{offset[3:]}")


_TEXTS: Final[dict[str, Callable[[datetime, int], str]]] = {
    "G": lambda when, count: "AD",
    "y": _year,
    "M": _month,
    "L": _month,
    "E": lambda when, count: _name(DAYS[when.weekday()], count),
    "a": lambda when, count: "AM" if when.hour < 12 else "PM",
    "z": lambda when, count: when.tzname() or "",
    "Z": lambda when, count: _offset(when),
    "X": _iso_offset,
}
