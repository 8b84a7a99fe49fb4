"""`Page`: a part of a long list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from kpybroker.client.connect.errors import usage

ROWS_MAX: Final = 50

T = TypeVar("T")


def sorted_by(rows: Iterable[T], sort: str, values: Mapping[str, Callable[[T], Any]]) -> list[T]:
    """The rows by a column, `-` before it for the largest first; what is not known comes last. Raises CommandError."""
    key = sort.removeprefix("-")
    if key not in values:
        raise usage(f"{sort[:50]!r} is no column to sort by", f"one of {', '.join(values)}")
    found = list(rows)
    known = [row for row in found if values[key](row) is not None]
    known.sort(key=values[key], reverse=sort.startswith("-"))
    return known + [row for row in found if values[key](row) is None]


class Page(NamedTuple):
    """Rows `first` to `last` (not included) of `total`; `number` begins at 1."""

    number: int
    pages: int
    first: int
    last: int
    total: int

    @classmethod
    def of(cls, total: int, number: int, rows: int = ROWS_MAX) -> Page:
        """The page with this number, or the nearest that exists."""
        pages = max(1, -(-total // rows))
        number = min(max(1, number), pages)
        return cls(number, pages, (number - 1) * rows, min(number * rows, total), total)
