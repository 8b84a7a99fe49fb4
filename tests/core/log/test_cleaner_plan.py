"""What is cleaned, how far, and in which groups (LogCleanerManagerTest, LogCleanerTest's grouping)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from kpybroker.config.topic import LogConfig
from kpybroker.core.log.cleaner_plan import SegmentSizes, from_offset, group_segments, log_to_clean
from kpybroker.wire.constants import INT32_MAX
from tests.support.storage.batches import log_config

NOW = 1_000_000


@dataclass
class FakeSegment:
    base_offset: int
    size: int = 100
    certain_timestamp: int = 0
    first_batch_timestamp: int | None = None


@dataclass
class FakeLog:
    """Segments of ten offsets; the last one is active and has five."""

    found: list[FakeSegment]
    config: LogConfig
    cleaner_offset: int | None = None
    log_start_offset: int = 0
    last_stable_offset: int = -1
    log_end_offset: int = field(init=False)

    def __post_init__(self) -> None:
        self.log_end_offset = self.found[-1].base_offset + 5
        if self.last_stable_offset < 0:
            self.last_stable_offset = self.log_end_offset

    def segments(self) -> list[FakeSegment]:
        return self.found


def log_of(count: int = 5, *, config: dict[str, Any] | None = None, **options: Any) -> FakeLog:
    segments = [FakeSegment(10 * n, 100, NOW - 1000 + 100 * n, NOW - 1000 + 100 * n) for n in range(count)]
    return FakeLog(segments, log_config(cleanup_policy=frozenset({"compact"}), **(config or {})), **options)


def test_all_but_the_active_segment_of_a_log_that_was_never_cleaned() -> None:
    found = log_to_clean(log_of(), NOW)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 40)
    assert (found.clean_bytes, found.cleanable_bytes, found.cleanable_ratio) == (0, 400, 1.0)
    assert found.is_cleanable
    assert found.invalid_checkpoint is None


def test_what_is_clean_counts_against_the_ratio() -> None:
    config = {"min_cleanable_dirty_ratio": 0.5}
    assert log_to_clean(log_of(cleaner_offset=20, config=config), NOW).cleanable_ratio == 0.5
    assert not log_to_clean(log_of(cleaner_offset=20, config=config), NOW).is_cleanable  # must be above it
    assert log_to_clean(log_of(cleaner_offset=10, config=config), NOW).is_cleanable


def test_a_segment_that_is_partly_clean_is_dirty() -> None:
    found = log_to_clean(log_of(cleaner_offset=15), NOW)
    assert (found.first_dirty_offset, found.clean_bytes, found.cleanable_bytes) == (15, 200, 300)


def test_nothing_from_the_last_stable_offset_on() -> None:
    """Of the segment that holds it, nothing at all."""
    assert log_to_clean(log_of(last_stable_offset=25), NOW).first_uncleanable_offset == 20
    assert log_to_clean(log_of(last_stable_offset=30), NOW).first_uncleanable_offset == 30
    found = log_to_clean(log_of(last_stable_offset=5, cleaner_offset=0), NOW)
    assert (found.first_uncleanable_offset, found.cleanable_bytes, found.is_cleanable) == (0, 0, False)


def test_an_unstable_offset_below_what_is_clean_leaves_nothing_to_clean() -> None:
    found = log_to_clean(log_of(last_stable_offset=5, cleaner_offset=20), NOW)
    assert (found.first_dirty_offset, found.cleanable_bytes) == (20, 0)


def test_nothing_that_is_younger_than_the_minimum_lag() -> None:
    config = {"min_compaction_lag_ms": 850}
    # The segments' largest timestamps are 1000, 900, 800... before now.
    assert log_to_clean(log_of(config=config), NOW).first_uncleanable_offset == 20
    assert log_to_clean(log_of(config={"min_compaction_lag_ms": 10_000}), NOW).first_uncleanable_offset == 0
    assert log_to_clean(log_of(config={"min_compaction_lag_ms": 10}), NOW).first_uncleanable_offset == 40


def test_the_maximum_lag_makes_a_log_due_however_clean_it_is() -> None:
    config = {"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 750}
    due = log_to_clean(log_of(cleaner_offset=20, config=config), NOW)
    assert (due.max_compaction_delay_ms, due.is_cleanable) == (50, True)
    later = log_to_clean(log_of(cleaner_offset=30, config=config), NOW)
    assert (later.max_compaction_delay_ms, later.is_cleanable) == (0, False)


def test_a_due_log_without_a_cleanable_byte_is_not_cleaned() -> None:
    config = {"max_compaction_lag_ms": 1}
    found = log_to_clean(log_of(cleaner_offset=10, last_stable_offset=15, config=config), NOW)
    assert found.max_compaction_delay_ms > 0
    assert not found.is_cleanable


def test_timestamps_are_read_only_where_a_lag_is_set() -> None:
    class Untimed(FakeSegment):
        certain_timestamp = property(lambda self: 1 // 0)
        first_batch_timestamp = property(lambda self: 1 // 0)

        def __init__(self, base_offset: int) -> None:
            self.base_offset, self.size = base_offset, 100

    log = log_of()
    log.found = [Untimed(10 * n) for n in range(5)]
    assert log_to_clean(log, NOW).is_cleanable


@pytest.mark.parametrize(("checkpoint", "start"), [(5, 12), (46, 0), (99, 12)])
def test_the_log_start_replaces_a_checkpoint_outside_the_log(checkpoint: int, start: int) -> None:
    found = log_to_clean(log_of(cleaner_offset=checkpoint, log_start_offset=start), NOW)
    assert found.first_dirty_offset == start
    assert found.invalid_checkpoint is not None
    assert str(checkpoint) in found.invalid_checkpoint


def test_a_log_that_is_clean_to_its_end_or_empty_is_not_cleanable() -> None:
    assert not log_to_clean(log_of(cleaner_offset=40), NOW).is_cleanable
    assert not log_to_clean(log_of(cleaner_offset=45), NOW).is_cleanable
    empty = log_of(1)
    empty.found[0].size = 0
    assert not log_to_clean(empty, NOW).is_cleanable


def test_ranges_of_segments() -> None:
    segments = [FakeSegment(10 * n) for n in range(4)]

    def bases(start: int, end: int | None = None) -> list[int]:
        return [segment.base_offset for segment in from_offset(segments, start, end)]

    assert bases(0) == [0, 10, 20, 30]
    assert bases(15) == [10, 20, 30]
    assert bases(15, 20) == [10]
    assert bases(15, 21) == [10, 20]
    assert bases(15, 15) == []
    assert bases(-1, 10) == [0]


def sizes(count: int, size: int = 10, index: int = 8, time_index: int = 12) -> list[SegmentSizes]:
    return [SegmentSizes(10 * n, size, index, time_index) for n in range(count)]


def grouped(segments: list[SegmentSizes], size: int, index: int, end: int = 1000) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in group_segments(segments, size, index, end)]


def test_groups_are_bounded_by_the_size_of_the_log_and_of_each_index() -> None:
    assert grouped(sizes(4), 1000, 1000) == [[0, 10, 20, 30]]
    assert grouped(sizes(4), 1, 1000) == [[0], [10], [20], [30]]
    assert grouped(sizes(4), 1000, 1) == [[0], [10], [20], [30]]
    assert grouped(sizes(4), 29, 1000) == [[0, 10], [20, 30]]
    assert grouped(sizes(4, index=20), 1000, 40) == [[0, 10], [20, 30]]
    assert grouped(sizes(4, time_index=20), 1000, 40) == [[0, 10], [20, 30]]
    assert grouped([], 1000, 1000) == []


def test_groups_hold_no_more_offsets_than_an_index_can_express() -> None:
    segments = [SegmentSizes(base, 10, 8, 12) for base in (0, 10, INT32_MAX, INT32_MAX + 2)]
    assert grouped(segments, 1000, 1000, INT32_MAX + 10) == [[0, 10], [INT32_MAX, INT32_MAX + 2]]
    assert grouped(segments[:3], 1000, 1000, INT32_MAX + 1) == [[0, 10, INT32_MAX]]
    assert grouped(segments[:3], 1000, 1000, INT32_MAX + 2) == [[0, 10], [INT32_MAX]]


def test_empty_segments_join_any_group() -> None:
    """Otherwise an empty segment would stay every 2^31 offsets."""
    segments = [SegmentSizes(0, 10, 8, 12), SegmentSizes(INT32_MAX + 5, 0, 0, 0)]
    assert grouped(segments, 1000, 1000, INT32_MAX * 2) == [[0, INT32_MAX + 5]]
