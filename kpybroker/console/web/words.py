"""Numbers as people say them: a configuration's milliseconds and bytes."""

from __future__ import annotations

from typing import Final

from kpybroker.client.show.cells import size

_STEPS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
_UNITS_MS: Final = {"ms": 1, "seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
LONG_AGO_MS: Final = 400 * 86_400_000
"""Longer durations are said in years of 365 days."""
NO_LIMIT: Final = (1 << 63) - 1


def duration(ms: int) -> str:
    """`1.5 hours` of milliseconds, with one decimal at most; below a second `250 ms`."""
    if ms >= LONG_AGO_MS:
        return _counted(ms / (365 * 86_400_000), "year")
    for unit, step in _STEPS:
        if ms >= step:
            return _counted(ms / step, unit)
    return f"{ms} ms"


def _counted(number: float, unit: str) -> str:
    text = f"{number:.1f}".removesuffix(".0")
    return f"{text} {unit}" if text == "1" else f"{text} {unit}s"


def said(key: str, value: str | None) -> str | None:
    """A configuration's value as people say it; None where that would say no more than the value does.

    The unit is the last word of Kafka's key: `retention.ms`, `segment.bytes`, `log.retention.hours`.
    """
    if value is None or not value.isascii() or not value.isdecimal():
        return None
    number, unit = int(value), key.rpartition(".")[2]
    if number == NO_LIMIT:
        return "no limit"
    if unit == "bytes" and number >= 1024:
        return size(number)
    ms = number * _UNITS_MS.get(unit, 0)
    return duration(ms) if ms >= 1_000 and not (unit != "ms" and ms < 2 * _UNITS_MS[unit]) else None
