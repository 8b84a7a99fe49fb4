"""Columns of tables, and how values look in their cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kpybroker.client.connect.visible import visible

NONE: Final = "-"
NO_TIMESTAMP: Final = -1

Row = Mapping[str, Any]


class Column(NamedTuple):
    """A column of a table: its title, and the key of a row or a function that makes the text."""

    title: str
    cell: str | Callable[[Row], Any]
    wide: bool = False
    """Only with `--format wide`."""
    style: Callable[[Row], str] | str = ""
    """rich's style, or a function of the row that gives it."""

    def value(self, row: Row) -> Any:
        """What the cell shows."""
        return row.get(self.cell) if isinstance(self.cell, str) else self.cell(row)


def shown(value: Any) -> str:
    """A cell's text on one line: `-` for nothing, yes and no, lists with commas."""
    if value is None or value == "":
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return visible(",".join(map(str, value))) or NONE
    return visible(str(value))


def moment(timestamp_ms: int | None) -> str | None:
    """ISO 8601 in UTC, with milliseconds; None for none, and the number where Python's calendar ends."""
    if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
        return None
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return f"{found.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def size(count: int | None) -> str | None:
    """Bytes with a unit of 1024: `1.5 MiB`."""
    if count is None:
        return None
    number = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
