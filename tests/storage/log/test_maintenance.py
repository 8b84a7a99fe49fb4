"""Retention, truncation and the log start (UnifiedLogTest)."""

from __future__ import annotations

import random

import pytest

from kpybroker.core.log.cleaner_plan import log_to_clean
from kpybroker.storage.cleaning.timestamps import TimestampsJob, read_timestamps
from kpybroker.storage.disk import names
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.maintenance import undecided_segment
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import (
    NOW_MS,
    append,
    append_as_coordinator,
    append_batch,
    batch,
    claiming,
    found_by,
    log_config,
    marker,
    open_log,
    read_all,
)
from tests.support.storage.lossy_files import LossyFiles

PATH = "/logs/t-0"


def filled(files: LossyFiles | None = None, count: int = 20, **config: object) -> Log:
    """Records at NOW, one a millisecond, four a segment."""
    settings = {"segment_bytes": 300, "retention_ms": -1, "retention_bytes": -1, "index_interval_bytes": 80}
    log = open_log(files or LossyFiles(), PATH, log_config(**{**settings, **config}))
    for number in range(count):
        append(log, b"%02d" % number, timestamp=NOW_MS + number, leader_epoch=number // 10)
    log.update_high_watermark(log.log_end_offset)
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments()]


def test_time_retention_removes_segments_whose_newest_record_is_too_old() -> None:
    log = filled(retention_ms=1000)
    assert log.delete_old_segments(NOW_MS + 1000) == 0
    assert log.delete_old_segments(NOW_MS + 1000 + 4) == 1
    assert log.log_start_offset == 4
    assert [offset for offset, _ in read_all(log)] == list(range(4, 20))
    assert log.delete_old_segments(NOW_MS + 10**6) == 4
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (20, 20, [20])
    assert append(log, b"next") == 20


def test_an_empty_active_segment_is_not_removed_again() -> None:
    log = filled(retention_ms=1000)
    log.delete_old_segments(NOW_MS + 10**6)
    assert log.delete_old_segments(NOW_MS + 10**9) == 0
    assert bases(log) == [20]


def test_without_timestamps_the_files_age_counts(files: LossyFiles) -> None:
    log = open_log(files, PATH, log_config(segment_bytes=300, retention_ms=1000))
    for _ in range(8):
        append(log, b"x", timestamp=-1)
    log.update_high_watermark(8)
    first, second = log.segments()
    files.set_mtime(first.records.path, NOW_MS - 5000)
    files.set_mtime(second.records.path, NOW_MS)
    assert log.delete_old_segments(NOW_MS) == 1
    assert bases(log) == [4]


def test_size_retention_keeps_at_least_the_configured_bytes() -> None:
    log = filled()
    size = log.segments()[0].size
    log.update_config(log_config(retention_ms=-1, retention_bytes=2 * size + 1))
    assert log.delete_old_segments(NOW_MS) == 2
    assert log.size == 3 * size
    log.update_config(log_config(retention_ms=-1, retention_bytes=0))
    assert log.delete_old_segments(NOW_MS) == 3
    assert log.size == 0


def test_nothing_at_or_above_the_high_watermark_is_removed() -> None:
    log = filled(retention_ms=0)
    log.update_high_watermark(9)
    assert log.delete_old_segments(NOW_MS + 10**6) == 2
    assert bases(log)[0] == 8


def test_a_compacted_log_loses_only_what_is_below_its_start() -> None:
    log = filled()
    log.update_config(log_config(cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0))
    assert log.delete_old_segments(NOW_MS + 10**6) == 0
    log.increment_log_start_offset(9)
    assert log.delete_old_segments(NOW_MS + 10**6) == 2
    assert bases(log)[0] == 8


def test_removed_files_are_marked_at_once_and_deleted_after_the_delay(files: LossyFiles) -> None:
    log = filled(files, retention_ms=1000, file_delete_delay_ms=500)
    log.delete_old_segments(NOW_MS + 1004)
    marked = {entry.name for entry in files.listdir(PATH) if entry.name.endswith(names.DELETED_SUFFIX)}
    assert marked == {f"{0:020d}{kind}.deleted" for kind in (".log", ".index", ".timeindex")}
    assert log.deletions_due(NOW_MS + 1004 + 499) == []
    due = log.deletions_due(NOW_MS + 1004 + 500)
    assert {path.rpartition("/")[2] for path in due} >= marked
    assert log.deletions_due(NOW_MS + 10**9) == []


def test_the_log_start_moves_forward_up_to_the_high_watermark() -> None:
    log = filled()
    log.update_high_watermark(15)
    assert log.increment_log_start_offset(11)
    assert not log.increment_log_start_offset(5)
    assert log.log_start_offset == 11
    assert log.epochs.entries == [(1, 11)]
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.OFFSET_OUT_OF_RANGE):
        log.increment_log_start_offset(16)


def test_the_first_unstable_offset_never_lies_before_the_log_start() -> None:
    log = open_log(LossyFiles(), PATH, log_config(), verification_enabled=False)
    append(log, b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log, b"y")
    log.update_high_watermark(2)
    log.increment_log_start_offset(1)
    assert log.last_stable_offset == 1
    append_as_coordinator(log, marker(commit=True, producer_id=1))
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


@pytest.mark.parametrize("target", range(21))
def test_truncation_to_any_offset(files: LossyFiles, target: int) -> None:
    log = filled(files)
    log.flush()
    assert log.truncate_to(target, now_ms=NOW_MS) == (target < 20)
    assert read_all(log) == [(n, b"%02d" % n) for n in range(target)]
    assert log.log_end_offset == log.high_watermark == log.recovery_point == target
    assert log.epochs.entries == [(epoch, epoch * 10) for epoch in (0, 1) if epoch * 10 < target]
    assert append(log, b"other", leader_epoch=5) == target
    if target:
        found = found_by(log.search_timestamp(NOW_MS + target - 1))
        assert found is not None
        assert found.offset == target - 1
    log.close()
    again = open_log(files, PATH, log_config(segment_bytes=300))
    assert read_all(again) == [*((n, b"%02d" % n) for n in range(target)), (target, b"other")]


def test_truncation_reverts_producer_state() -> None:
    log = open_log(LossyFiles(), PATH, log_config(segment_bytes=300, index_interval_bytes=80))
    for number in range(20):
        append(log, b"x", producer_id=3, producer_epoch=0, base_sequence=number)
    log.truncate_to(13, now_ms=NOW_MS)
    assert log.producers.producers[3].last_sequence == 12
    assert append(log, b"x", producer_id=3, producer_epoch=0, base_sequence=13) == 13


def test_truncating_below_the_first_segment_starts_again() -> None:
    log = filled(retention_ms=1000)
    log.delete_old_segments(NOW_MS + 1008)
    assert log.log_start_offset == 8
    log.truncate_to(3, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (3, 3, [3])


def test_starting_again_may_keep_a_log_start_offset() -> None:
    log = filled()
    log.truncate_fully_and_start_at(50, now_ms=NOW_MS, log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (40, 50, 50)
    assert log.epochs.entries == []
    assert append(log, b"x") == 50


def test_a_negative_target_is_an_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        filled().truncate_to(-1, now_ms=NOW_MS)


def test_a_segment_is_rolled_by_time() -> None:
    log = open_log(LossyFiles(), PATH, log_config(segment_ms=100))
    append(log, b"a", timestamp=1000)
    append(log, b"b", timestamp=1100)
    assert bases(log) == [0]
    append(log, b"c", timestamp=1101)
    assert bases(log) == [0, 2]


def test_a_segment_without_timestamps_is_rolled_by_its_age() -> None:
    log = open_log(LossyFiles(), PATH, log_config(segment_ms=100))
    for now_ms in (NOW_MS, NOW_MS + 100, NOW_MS + 101):
        follow = log.log_end_offset
        append_batch(log, batch(b"x", timestamp=-1), now_ms=now_ms)
        assert log.log_end_offset == follow + 1
    assert bases(log) == [0, 2]


def test_jitter_makes_the_roll_earlier() -> None:
    log = open_log(
        LossyFiles(), PATH, log_config(segment_ms=100, segment_jitter_ms=50), random_below=lambda limit: limit - 10
    )
    append(log, b"a", timestamp=1000)
    append(log, b"b", timestamp=1060)
    assert bases(log) == [0]
    append(log, b"c", timestamp=1061)
    assert bases(log) == [0, 2]


def test_a_full_index_rolls_the_segment() -> None:
    log = open_log(LossyFiles(), PATH, log_config(segment_index_bytes=24, index_interval_bytes=0))
    for _ in range(20):
        append(log, b"x")
    assert len(bases(log)) > 5
    assert len(read_all(log)) == 20


def test_a_gap_wider_than_an_index_can_express_rolls() -> None:
    log = open_log(LossyFiles(), PATH)
    log.append_as_follower(batch(b"a"), now_ms=NOW_MS)
    log.append_as_follower(batch(b"b", base_offset=2**31 + 5), now_ms=NOW_MS)
    assert bases(log) == [0, 2**31 + 5]
    assert read_all(log) == [(0, b"a"), (2**31 + 5, b"b")]


def test_the_next_flush_makes_the_removal_of_segments_durable(files: LossyFiles) -> None:
    log = filled(files)
    log.flush()
    log.truncate_to(9, now_ms=NOW_MS)
    append(log, b"x")
    log.flush()
    after = files.crash(random.Random(0), in_order=True)
    found = [entry.name for entry in after.listdir(PATH) if entry.name.endswith(names.LOG_SUFFIX)]
    assert sorted(found) == [f"{base:020d}{names.LOG_SUFFIX}" for base in bases(log)]


def test_an_announced_truncation_limits_the_recovery_point() -> None:
    log = filled()
    log.flush()
    log.prepare_truncation(9)
    append(log, b"x")
    log.flush()
    assert log.recovery_point == 9
    log.truncate_to(9, now_ms=NOW_MS)
    append(log, b"x")
    log.flush()
    assert log.recovery_point == 10


# --- times that headers do not say

YEAR_MS = 365 * 24 * 3600 * 1000
LATER_MS = NOW_MS + YEAR_MS
"""When retention looks: a year after the records that headers claim."""


def misled(files: LossyFiles, *claims: tuple[int, int], **config: object) -> Log:
    """A log with a segment for each (time of its record, largest timestamp its header claims), written at LATER."""
    settings = {"segment_bytes": 80, "retention_ms": 1000, "segment_ms": 10**15, **config}
    log = open_log(files, PATH, log_config(**settings))
    for timestamp, claimed in claims:
        append_batch(log, claiming(batch(b"v", timestamp=timestamp), max_timestamp=claimed))
    log.update_high_watermark(log.log_end_offset)
    for segment in log.segments():
        files.set_mtime(segment.records.path, LATER_MS)
    return log


def walk(files: LossyFiles, log: Log, now_ms: int = LATER_MS) -> int:
    """Read the timestamps of what retention can't decide, as the broker does; how many segments."""
    count = 0
    while (segment := undecided_segment(log, now_ms)) is not None:
        end = segment.size
        job = TimestampsJob(segment.records.path, segment.walked_bytes, end, 1000.0)
        segment.learn_timestamps(end, *read_timestamps(files, job, lambda _: None))
        count += 1
    return count


@pytest.mark.parametrize("claimed", [0, 1000, -1])
def test_records_of_now_stay_whatever_their_headers_say(files: LossyFiles, claimed: int) -> None:
    log = misled(files, *[(LATER_MS, claimed)] * 3)
    assert log.delete_old_segments(LATER_MS + 500) == 0
    assert walk(files, log, LATER_MS + 500) == 1  # the first that stays ends it
    assert log.delete_old_segments(LATER_MS + 500) == 0
    assert walk(files, log, LATER_MS + 500) == 0
    assert walk(files, log, LATER_MS + 1001) == 0  # the files are old themselves
    assert log.delete_old_segments(LATER_MS + 1001) == 3


@pytest.mark.parametrize("claimed", [NOW_MS, -1])
def test_old_records_go_once_they_were_read(files: LossyFiles, claimed: int) -> None:
    log = misled(files, *[(NOW_MS, claimed)] * 3)
    assert log.delete_old_segments(LATER_MS) == 0
    assert walk(files, log) == 3
    assert log.delete_old_segments(LATER_MS) == 3


def test_files_that_are_old_themselves_go_without_being_read(files: LossyFiles) -> None:
    log = misled(files, *[(NOW_MS, NOW_MS)] * 3)
    for segment in log.segments():
        files.set_mtime(segment.records.path, NOW_MS)
    assert walk(files, log) == 0
    assert log.delete_old_segments(LATER_MS) == 3


def test_what_could_not_be_read_goes_by_the_age_of_its_file(files: LossyFiles) -> None:
    log = misled(files, (NOW_MS, 0))
    segment = log.active_segment
    segment.learn_timestamps(segment.size, NOW_MS, 0, False)
    assert undecided_segment(log, LATER_MS) is None
    assert log.delete_old_segments(LATER_MS) == 0
    assert log.delete_old_segments(LATER_MS + 1001) == 1


def test_what_was_appended_since_is_read_too(files: LossyFiles) -> None:
    log = misled(files, (NOW_MS, 0), segment_bytes=10_000)
    assert walk(files, log) == 1
    append_batch(log, claiming(batch(b"v", timestamp=LATER_MS), max_timestamp=0))
    log.update_high_watermark(2)
    files.set_mtime(log.active_segment.records.path, LATER_MS)
    assert log.delete_old_segments(LATER_MS) == 0
    assert walk(files, log) == 1
    assert log.active_segment.max_timestamp == LATER_MS
    assert log.delete_old_segments(LATER_MS) == 0


def test_the_time_that_was_read_is_found_by_lookups_and_kept(files: LossyFiles) -> None:
    """In the time index, so that it need not be read again after a restart."""
    log = misled(files, (NOW_MS, -1), (LATER_MS, 7), (NOW_MS + 5, NOW_MS + 5), segment_bytes=10_000)
    log.roll(LATER_MS)
    assert walk(files, log) == 1
    log.close()
    for _ in range(2):
        log = open_log(files, PATH, log.config)
        segment = log.segments()[0]
        assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (LATER_MS, 1)
        assert segment.is_corrected
        found = [found_by(log.search_timestamp(when)) for when in (0, NOW_MS + 1, LATER_MS, LATER_MS + 1)]
        assert [-1 if one is None else one.offset for one in found] == [0, 1, 1, -1]
        largest = found_by(log.search_max_timestamp())
        assert largest is not None
        assert (largest.offset, largest.timestamp) == (1, LATER_MS)
        log.update_high_watermark(3)
        assert log.delete_old_segments(LATER_MS) == 0
        log.close()


def test_an_index_that_is_rebuilt_from_headers_has_to_be_read_again(files: LossyFiles) -> None:
    log = misled(files, (LATER_MS, 0))
    walk(files, log)
    segment = log.active_segment
    segment.rebuild_indexes()
    assert segment.max_timestamp == 0
    assert log.delete_old_segments(LATER_MS) == 0
    assert walk(files, log) == 1
    assert segment.max_timestamp == LATER_MS


def test_truncation_forgets_what_was_read_of_what_is_gone(files: LossyFiles) -> None:
    log = misled(files, (NOW_MS, 0), (LATER_MS, 0), segment_bytes=10_000)
    walk(files, log)
    log.truncate_to(1, now_ms=NOW_MS)
    append_batch(log, claiming(batch(b"v", timestamp=LATER_MS), max_timestamp=0))
    log.update_high_watermark(2)
    files.set_mtime(log.active_segment.records.path, LATER_MS)
    assert log.delete_old_segments(LATER_MS) == 0
    walk(files, log)
    assert log.active_segment.max_timestamp == LATER_MS


def test_records_of_now_are_not_compacted_before_their_lag(files: LossyFiles) -> None:
    log = misled(files, (NOW_MS, NOW_MS), (LATER_MS, 0), (LATER_MS, 0))
    config = {"cleanup_policy": frozenset({"compact"}), "min_compaction_lag_ms": 1000}
    log.update_config(log_config(**config))
    assert log_to_clean(log, LATER_MS).first_uncleanable_offset == 0
    assert walk(files, log) == 2
    assert log_to_clean(log, LATER_MS).first_uncleanable_offset == 1
