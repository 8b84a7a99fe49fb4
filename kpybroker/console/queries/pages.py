"""Lists: how one is sorted, and `Page`, a part of a long one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
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


def by_keys(*names: str) -> dict[str, Callable[[Any], Any]]:
    """Columns of rows that are dictionaries, by their keys."""
    return {name: itemgetter(name) for name in names}


class Query(NamedTuple):
    """What a page of several tables is asked for: a part of names, in small letters, and the column of each table."""

    text: str = ""
    sorts: Mapping[str, str] = {}
    """By the field of the page's address: `sort`, or `sort_` and the table's name."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Query:
        """What the fields of an address ask for."""
        sorts = {name: text for name, text in query.items() if name.startswith("sort")}
        return cls(query.get("q", "").strip().lower(), sorts)

    def sorted(self, field: str, rows: Iterable[T], values: Mapping[str, Callable[[T], Any]]) -> list[T]:
        """The rows of a table by the column that is asked for; as they are where none is. Raises CommandError."""
        sort = self.sorts.get(field, "")
        return sorted_by(rows, sort, values) if sort else list(rows)


ANYTHING: Final = Query()


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
