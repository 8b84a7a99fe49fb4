"""What was archived, and why: the last of it, for those who look at a share group. Kafka keeps no reasons.

Nothing is decided by it and it is not persisted: a leader that begins with the state of another one knows none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

ROWS_MAX: Final = 25
"""Rows of each reason that are kept: the last ones."""


class Reason(StrEnum):
    """Why records are never delivered again without having been accepted."""

    REJECTED = "rejected"
    DELIVERY_LIMIT = "delivery_limit"
    BELOW_START = "below_start"
    """The log's start offset has passed them."""
    NO_RECORD = "no_record"
    """Offsets without a record for the group: compacted, of an aborted transaction, a gap that a member has found."""


class Archived(NamedTuple):
    """Neighbouring offsets that were archived for one reason; the member is the last that held them, if any did."""

    first: int
    last: int
    reason: Reason
    delivery_count: int
    member_id: str


class ArchivedLog:
    """At most `ROWS_MAX` rows of each reason, so that what happens often displaces nothing else."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[Reason, deque[Archived]] = {}

    def __iter__(self) -> Iterator[Archived]:
        """All rows by offset."""
        return iter(sorted(row for rows in self._rows.values() for row in rows))

    def add(self, row: Archived) -> None:
        """The newest one; it joins the last one that it continues."""
        rows = self._rows.setdefault(row.reason, deque(maxlen=ROWS_MAX))
        if rows and rows[-1].last + 1 == row.first and rows[-1][2:] == row[2:]:
            row = row._replace(first=rows.pop().first)
        rows.append(row)

    def withdraw(self, first: int, last: int) -> None:
        """These offsets were not archived after all."""
        for rows in self._rows.values():
            kept = [piece for row in rows for piece in _outside(row, first, last)]
            rows.clear()
            rows.extend(kept)


def _outside(row: Archived, first: int, last: int) -> Iterator[Archived]:
    if row.last < first or row.first > last:
        yield row
        return
    if row.first < first:
        yield row._replace(last=first - 1)
    if row.last > last:
        yield row._replace(first=last + 1)
