"""Values of families, as they are read from a broker at one time: columns that share their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family

Tags = tuple[str, ...]


class Share(NamedTuple):
    """A share of the time: the nanoseconds since the start, and the share of the last minute."""

    total_ns: int
    one_minute: float


Value = int | float | Histogram | Share | None
"""By the family's kind. None: the MBean does not exist."""
Column = tuple[Family, Sequence[Value]]


class Reading(NamedTuple):
    """`rows` are values of the families' tags, which all have the same. An empty value: the MBean has no such tag."""

    rows: Sequence[Tags]
    columns: Sequence[Column]


def single(*values: tuple[Family, Value], tags: Tags = ()) -> Reading:
    """One row."""
    return Reading([tags], [(family, [value]) for family, value in values])
