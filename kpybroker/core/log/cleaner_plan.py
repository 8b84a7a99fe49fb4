"""Which log is cleaned next, and how its segments are grouped: the planning part of Kafka's LogCleanerManager and
Cleaner.

A log is clean up to the offset of its checkpoint, dirty from there to the first uncleanable offset, and above that not
cleanable: the active segment, everything from the last stable offset on, and records younger than
`min.compaction.lag.ms`. The log with the largest share of dirty bytes goes first, if the share is above
`min.cleanable.dirty.ratio` or its oldest dirty record is older than `max.compaction.lag.ms`.

Plain functions; times are arguments, in milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from kpybroker.config.topic import LogConfig
from kpybroker.wire.constants import INT32_MAX


class Segment(Protocol):
    """What the plan reads of a segment. Timestamps may need the disk, and are read only where a lag is set."""

    @property
    def base_offset(self) -> int:
        """The segment's first offset, which names its files."""

    @property
    def size(self) -> int:
        """Bytes of records."""

    @property
    def certain_timestamp(self) -> int:
        """The largest record timestamp in milliseconds; not before the file's modification time unless it is known."""

    @property
    def first_batch_timestamp(self) -> int | None:
        """The first batch's timestamp in milliseconds; None for an empty segment."""


class CompactedLog(Protocol):
    """What the plan reads of a log. `cleaner_offset` is its checkpoint, None for a log that was never cleaned."""

    cleaner_offset: int | None
    log_start_offset: int
    log_end_offset: int
    config: LogConfig

    @property
    def last_stable_offset(self) -> int:
        """The first offset that may belong to an undecided transaction."""

    def segments(self) -> Sequence[Segment]:
        """All segments in offset order; the last one is active."""


class LogToClean(NamedTuple):
    """What cleaning one log would do. Its keys are from `first_dirty_offset` to `first_uncleanable_offset`."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    max_compaction_delay_ms: int
    min_cleanable_ratio: float
    invalid_checkpoint: str | None
    """Why the log start is used instead of the checkpoint; None where the checkpoint is valid."""

    @property
    def cleanable_ratio(self) -> float:
        """The share of dirty bytes among clean and dirty ones, 0 to 1."""
        return self.cleanable_bytes / (self.clean_bytes + self.cleanable_bytes)

    @property
    def is_cleanable(self) -> bool:
        """Whether the log is dirty enough, or its oldest dirty record is due."""
        if self.cleanable_bytes + self.clean_bytes == 0:
            return False
        is_due = self.max_compaction_delay_ms > 0 and self.cleanable_bytes > 0
        return is_due or self.cleanable_ratio > self.min_cleanable_ratio


def log_to_clean(log: CompactedLog, now_ms: int) -> LogToClean:
    """LogCleanerManager.cleanableOffsets, calculateCleanableBytes and maxCompactionDelay."""
    first_dirty, invalid = _first_dirty_offset(log)
    segments = log.segments()
    active = segments[-1].base_offset
    dirty = from_offset(segments, min(first_dirty, active), active)
    uncleanable = max(first_dirty, _first_uncleanable_offset(log, active, dirty, now_ms))
    beyond = from_offset(segments, min(uncleanable, active), active)
    first_uncleanable = beyond[0].base_offset if beyond else active
    return LogToClean(
        first_dirty,
        first_uncleanable,
        sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        sum(s.size for s in from_offset(segments, min(first_dirty, first_uncleanable), first_uncleanable)),
        _compaction_delay(dirty, log.config.max_compaction_lag_ms, now_ms),
        log.config.min_cleanable_dirty_ratio,
        invalid,
    )


def _first_dirty_offset(log: CompactedLog) -> tuple[int, str | None]:
    start = log.log_start_offset
    checkpoint = start if log.cleaner_offset is None else log.cleaner_offset
    if checkpoint < start:
        return start, (
            f"Resetting first dirty offset to log start offset {start} since the checkpointed offset {checkpoint} is "
            "invalid."
        )
    if checkpoint > log.log_end_offset:
        return start, (
            f"The last checkpoint dirty offset is {checkpoint}, which is larger than the log end offset "
            f"{log.log_end_offset}. Resetting to the log start offset {start}."
        )
    return checkpoint, None


def _first_uncleanable_offset(log: CompactedLog, active: int, dirty: Sequence[Segment], now_ms: int) -> int:
    bounds = [log.last_stable_offset, active]
    lag_ms = max(log.config.min_compaction_lag_ms, 0)
    if lag_ms > 0:
        bounds += [segment.base_offset for segment in dirty if segment.certain_timestamp > now_ms - lag_ms][:1]
    return min(bounds)


def _compaction_delay(dirty: Sequence[Segment], max_compaction_lag_ms: int, now_ms: int) -> int:
    """How long the oldest dirty record has been due by `max.compaction.lag.ms`; 0 where it is not due."""
    limit = now_ms - max(max_compaction_lag_ms, 0)
    if limit <= 0:
        return 0
    known = [segment.first_batch_timestamp for segment in dirty]
    earliest = min((timestamp for timestamp in known if timestamp is not None and timestamp > 0), default=limit)
    return max(0, limit - earliest)


S = TypeVar("S", bound=Segment)


def from_offset(segments: Sequence[S], start: int, end: int | None = None) -> list[S]:
    """The segment that holds `start` and those after it, with base offsets below `end` (LogSegments.values)."""
    if start == end:
        return []
    bases = [segment.base_offset for segment in segments]
    return list(segments[max(0, bisect_right(bases, start) - 1) : None if end is None else bisect_left(bases, end)])


class SegmentSizes(NamedTuple):
    """A segment as grouping sees it."""

    base_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], max_bytes: int, max_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentSizes]]:
    """Neighbours that fit into one segment, so that cleaned segments do not become ever smaller.

    Log, offset index and time index each have their limit, and offsets must fit the index (groupSegmentsBySize).
    """
    groups: list[list[SegmentSizes]] = []
    total = NOTHING
    for place, segment in enumerate(segments):
        following = segments[place + 1].base_offset if place + 1 < len(segments) else first_uncleanable_offset
        wider = SegmentSizes(
            total.base_offset,
            total.size + segment.size,
            total.index_bytes + segment.index_bytes,
            total.time_index_bytes + segment.time_index_bytes,
        )
        fits = (
            bool(groups)
            and wider.size <= max_bytes
            and wider.index_bytes <= max_index_bytes
            and wider.time_index_bytes <= max_index_bytes
            and (segment.size == 0 or following - 1 - total.base_offset <= INT32_MAX)
        )
        if fits:
            groups[-1].append(segment)
            total = wider
        else:
            groups.append([segment])
            total = segment
    return groups


NOTHING = SegmentSizes(0, 0, 0, 0)
