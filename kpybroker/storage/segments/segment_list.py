"""The segments of a log, ordered by base offset (Kafka's LogSegments), and how one is opened by a configuration."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from kpybroker.core.topic_partition import shared
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles, SegmentSettings

if TYPE_CHECKING:
    from kpybroker.config.topic import LogConfig


class LogSegments:
    """A sorted map of base offset to segment. Never empty once its log is loaded."""

    __slots__ = ("_bases", "_segments", "active")

    def __init__(self) -> None:
        # Nearly all logs have one segment, with the same base: tuples are smaller. A log that had two has lists, and
        # each of thousands is added without a copy of the others.
        self._bases: tuple[int, ...] | list[int] = ()
        self._segments: tuple[LogSegment, ...] | list[LogSegment] = ()  # of these bases
        self.active: LogSegment = None  # type: ignore[assignment]  # the last one; set by the first `add`

    def __len__(self) -> int:
        return len(self._bases)

    def __contains__(self, base_offset: int) -> bool:
        return self.get(base_offset) is not None

    @property
    def base_offsets(self) -> list[int]:
        """All base offsets, ascending."""
        return list(self._bases)

    @property
    def first(self) -> LogSegment:
        """The segment with the lowest base offset."""
        return self._segments[0]

    @property
    def size(self) -> int:
        """Bytes of all log files."""
        return sum(segment.records.size for segment in self._segments)

    def get(self, base_offset: int) -> LogSegment | None:
        """The segment with this base offset."""
        found = self.floor(base_offset)
        return found if found is not None and found.base_offset == base_offset else None

    def add(self, segment: LogSegment) -> None:
        """Add a segment; it replaces one with the same base offset."""
        base = segment.base_offset
        if not self._bases or self._bases == (base,):
            self._bases, self._segments = shared((base,)), (segment,)
        else:
            bases, segments = self._lists()
            slot = bisect_left(bases, base)
            if slot < len(bases) and bases[slot] == base:
                segments[slot] = segment
            else:
                bases.insert(slot, base)
                segments.insert(slot, segment)
        self.active = self._segments[-1]

    def _lists(self) -> tuple[list[int], list[LogSegment]]:
        if isinstance(self._bases, tuple) or isinstance(self._segments, tuple):
            self._bases, self._segments = list(self._bases), list(self._segments)
        return self._bases, self._segments

    def remove(self, base_offset: int) -> None:
        """Take a segment out of the map. Raises KeyError."""
        slot = bisect_left(self._bases, base_offset)
        if slot == len(self._bases) or self._bases[slot] != base_offset:
            raise KeyError(base_offset)
        bases, segments = self._lists()
        del bases[slot], segments[slot]
        if self._segments:
            self.active = self._segments[-1]

    def all(self) -> list[LogSegment]:
        """All segments, ascending."""
        return list(self._segments)

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment whose base offset is not above an offset."""
        slot = bisect_right(self._bases, offset)
        return self._segments[slot - 1] if slot else None

    def lower(self, offset: int) -> LogSegment | None:
        """The last segment whose base offset is below an offset."""
        slot = bisect_left(self._bases, offset)
        return self._segments[slot - 1] if slot else None

    def higher(self, offset: int) -> LogSegment | None:
        """The first segment whose base offset is above an offset."""
        slot = bisect_right(self._bases, offset)
        return self._segments[slot] if slot < len(self._bases) else None

    def from_offset(self, start: int, end: int | None = None) -> list[LogSegment]:
        """The segment that holds `start`, and those after it whose base offset is below `end`."""
        first = max(0, bisect_right(self._bases, start) - 1)
        last = len(self._bases) if end is None else bisect_left(self._bases, end)
        return list(self._segments[first:last])


def open_segment(
    files: SegmentFiles, config: LogConfig, *, now_ms: int, roll_jitter_ms: int = 0, create: bool = False
) -> LogSegment:
    """Open a segment by a log's configuration, or with `create` make a new one. Raises OSError."""
    preallocate_bytes = config.segment_bytes if create and config.preallocate else 0
    settings = SegmentSettings(
        config.segment_index_bytes, config.index_interval_bytes, roll_jitter_ms, preallocate_bytes
    )
    return LogSegment(files, settings, now_ms=now_ms, create=create)
