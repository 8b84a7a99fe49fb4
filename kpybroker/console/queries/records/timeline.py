"""`Timeline`: the records of several partitions as one list by time, from a place in it towards newer or older ones.

Within a partition the order is that of offsets, whatever the timestamps say. Between partitions the earlier timestamp
is first, as in a merge of sorted lists. A place in the list is a cut: the next offset of each partition. A page that
ends at a cut and one that begins there have no record twice and leave none out.

Nothing is read here. `wanted` names ranges of offsets to read, the caller hands in what it read of them, and `pop`
gives the next record, or None where something must be read before it is known. Without a filter a record is given when
every partition has one to compare it with. With a filter that could be long after, so a partition counts as behind a
time when the last record that was read of it is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kpybroker.client.records.offsets import Bounds
from kpybroker.client.records.record import Record

NEWER: Final = 1
OLDER: Final = -1

Cursor = dict[int, int]
"""By partition, the offset of the first record after a cut."""


@dataclass(slots=True)
class _Lane:
    """A partition: `at` is up to where it was read, `edge` the time there, which grows in the direction of reading."""

    bounds: Bounds
    at: int
    edge: float = -math.inf
    found: deque[Record] = field(default_factory=deque)

    def left(self, way: int) -> int:
        """Offsets that were not read."""
        return self.bounds.end - self.at if way == NEWER else self.at - self.bounds.start


class Timeline:
    """From `cut` on, `way` NEWER or OLDER. `is_exact` is for all records, otherwise some are left out by a filter."""

    def __init__(self, bounds: Mapping[int, Bounds], cut: Cursor, way: int, *, is_exact: bool) -> None:
        self.way = way
        self._is_exact = is_exact
        self._lanes = {number: _Lane(one, cut[number]) for number, one in bounds.items()}

    @property
    def left(self) -> int:
        """How many offsets were not read."""
        return sum(lane.left(self.way) for lane in self._lanes.values())

    @property
    def is_done(self) -> bool:
        """Whether everything was read, and given."""
        return self.left == 0 and not any(lane.found for lane in self._lanes.values())

    @property
    def time_ms(self) -> int | None:
        """Everything on this side of this time was read; None where nothing is known yet, or nothing is left."""
        edges = [lane.edge for lane in self._lanes.values() if lane.left(self.way)]
        return int(min(edges)) * self.way if edges and math.isfinite(min(edges)) else None

    def cut(self) -> Cursor:
        """The place after the last record that was given. What was read before it and not given is no record of it."""
        return {number: self._cut(lane) for number, lane in self._lanes.items()}

    def _cut(self, lane: _Lane) -> int:
        if not lane.found:
            return lane.at
        return (lane.found[0].offset or 0) + (self.way == OLDER)

    def wanted(self, each: int) -> dict[int, Bounds]:
        """What to read before the next record is known, at most `each` offsets of a partition."""
        lanes = {number: lane for number, lane in self._lanes.items() if not lane.found and lane.left(self.way)}
        first = self._first()
        if first is not None:
            time = self._key(first)[0]
            lanes = {number: lane for number, lane in lanes.items() if self._is_needed(lane, time)}
        elif not self._is_exact and lanes:
            edges = sorted(lane.edge for lane in lanes.values())
            half = edges[len(edges) // 2]
            lanes = {number: lane for number, lane in lanes.items() if lane.edge <= half}
        return {number: self._range(lane, each) for number, lane in lanes.items()}

    def _range(self, lane: _Lane, each: int) -> Bounds:
        if self.way == NEWER:
            return Bounds(lane.at, min(lane.bounds.end, lane.at + each))
        return Bounds(max(lane.bounds.start, lane.at - each), lane.at)

    def take(self, number: int, records: Iterable[Record], scanned: Bounds, last_ms: int | None) -> None:
        """What the filter accepted of a range that was read, in the order of offsets.

        `last_ms` is the time of the record of the range that is furthest in the direction, None if it has none.
        """
        lane = self._lanes[number]
        if self.way == NEWER:
            lane.at = scanned.end
            lane.found.extend(records)
        else:
            lane.at = scanned.start
            lane.found.extend(reversed(list(records)))
        if last_ms is not None:
            lane.edge = last_ms * self.way

    def pop(self) -> Record | None:
        """The next record; None where `wanted` must be read before, or nothing is left."""
        first = self._first()
        if first is None:
            return None
        time = self._key(first)[0]
        for lane in self._lanes.values():
            if not lane.found and lane.left(self.way) and self._is_needed(lane, time):
                return None
        return self._lanes[first.partition or 0].found.popleft()

    def _is_needed(self, lane: _Lane, time: float) -> bool:
        """Whether what is next of a partition may be before a record of this time."""
        return self._is_exact or lane.edge <= time

    def _first(self) -> Record | None:
        found = [lane.found[0] for lane in self._lanes.values() if lane.found]
        return min(found, key=self._key, default=None)

    def _key(self, record: Record) -> tuple[int, int, int]:
        return (
            self.way * (record.timestamp_ms or 0),
            self.way * (record.partition or 0),
            self.way * (record.offset or 0),
        )
