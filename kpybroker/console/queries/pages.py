"""`Page`: a part of a long list."""

from __future__ import annotations

from typing import Final, NamedTuple

ROWS_MAX: Final = 50


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
