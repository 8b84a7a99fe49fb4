"""A series of a client: a name, labels, and a value.

A sum that only grows is a COUNT, whether the client pushed it whole or as what was added since its last push. Any other
sum is a GAUGE. Of an exponential histogram the count and the sum are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, in the order of the names."""

COUNT_MAX: Final = (1 << 64) - 1
"""Of a bucket, in OTLP."""


class SeriesKind(Enum):
    """What a value is."""

    GAUGE = "gauge"
    COUNT = "count"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Distribution:
    """The value of a histogram or a summary.

    Of a histogram `at` are the upper bounds of its buckets, and `values` how many are in each; the last bucket, which
    has no bound, is one more. Of a summary they are quantiles and their values.
    """

    count: int
    sum: float
    at: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def plus(self, added: Distribution) -> Distribution:
        """A histogram with what was added; with other bounds only that."""
        if added.at != self.at:
            return added
        values = tuple(min(one + more, COUNT_MAX) for one, more in zip(self.values, added.values, strict=True))
        count = min(self.count + added.count, COUNT_MAX)
        return Distribution(count, finite(self.sum) + finite(added.sum), self.at, values)


Value: TypeAlias = int | float | Distribution


@dataclass(frozen=True, slots=True)
class Series:
    """One value of a client. `unit` is as OTLP has it, empty where the client says none.

    `start_ms`: since when a count has been counted; 0 where only the client knows.
    """

    name: str
    labels: Labels
    kind: SeriesKind
    value: Value
    unit: str = ""
    description: str = ""
    start_ms: int = 0

    @property
    def number(self) -> int | float:
        """The value; of a distribution how many it has."""
        return self.value.count if isinstance(self.value, Distribution) else self.value


@dataclass(frozen=True, slots=True)
class Sample:
    """A series as it was pushed. `is_delta`: the value is what was added since the last push."""

    series: Series
    is_delta: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """A client that has pushed. Times are the broker's, in milliseconds since the epoch.

    `resource` is what the client says of itself: `client_rack`, `group_id`, `transactional_id`. `left_out` is how many
    values of its last push were not kept, because there are too many or they are malformed.
    """

    instance_id: bytes
    client_id: str
    software_name: str
    software_version: str
    address: str
    resource: Labels
    since_ms: int
    pushed_ms: int
    pushes: int
    is_terminated: bool
    left_out: int
    series: Sequence[Series] = ()
    """In the order of names and labels."""


def finite(number: float) -> float:
    """The number, 0 for one that would spoil a sum for good."""
    return number if math.isfinite(number) else 0
