"""What share groups have done at this broker since it started, for its metrics (Kafka's ``ShareGroupMetrics``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from kpybroker.core.share.values import Acknowledgement, AcknowledgeType
from kpybroker.metrics.histogram import Histogram

PERCENT: Final = 100


class GroupTimes:
    """Of one group with share partitions here."""

    __slots__ = ("acquire_ms", "fetch_ratio")

    def __init__(self) -> None:
        self.fetch_ratio = Histogram()
        """Of the partitions that a fetch asks for, how many gave it records, in percent."""
        self.acquire_ms = Histogram()


class ShareCounts:
    """`groups` has those with share partitions here: there is a bound to both."""

    __slots__ = ("acknowledged", "groups", "load_ms")

    def __init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        """Records by `AcknowledgeType`, whether or not their acknowledgement was right, as in Kafka."""
        self.load_ms = Histogram()
        self.groups: dict[str, GroupTimes] = {}

    def count_acknowledgements(self, acknowledgements: Iterable[Acknowledgement]) -> None:
        """One partition's of a request."""
        for first, last, types in acknowledgements:
            if len(types) == 1:
                self.acknowledged[types[0]] += last - first + 1
            else:
                self.acknowledged.update(types)

    def fetched(self, group_id: str, gave_records: int, wanted: int, took_s: float) -> None:
        """A fetch has its response."""
        times = self.groups.get(group_id)
        if times is None:
            return  # it has ended since
        times.fetch_ratio.record(PERCENT * gave_records // wanted)
        if gave_records:
            times.acquire_ms.record(round(1000 * took_s))

    def rotate(self) -> None:
        """A window of quantiles is over."""
        self.load_ms.rotate()
        for times in self.groups.values():
            times.fetch_ratio.rotate()
            times.acquire_ms.rotate()


NAMED: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
"""What is counted: a gap is no record."""
