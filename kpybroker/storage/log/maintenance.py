"""Truncation, retention and the moving log start offset: what removes records from a log.

Functions over the log they change; none raises OSError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import failing_takes_offline, is_disk_full
from kpybroker.storage.disk.files import unlink_if_exists
from kpybroker.storage.log.log_state import NO_LIMIT, NOTHING_CACHED, LogState
from kpybroker.storage.log.recovery import rebuild_producer_state
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafka.log.UnifiedLog")

SEGMENTS_AT_ONCE = 16
"""Retention removes no more segments in one step: each costs four renames, 10 to 40 µs each."""

P = ParamSpec("P")
R = TypeVar("R")


def guarded(function: Callable[Concatenate[LogState, P], R]) -> Callable[Concatenate[LogState, P], R]:
    """The function, whose OSError is KAFKA_STORAGE_ERROR (full disk) or LogDirError."""

    @wraps(function)
    def changing(log: LogState, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(log, *args, **kwargs)
        except OSError as error:
            raise log.io_error(error) from error

    return changing


def _whole_or_offline(function: Callable[Concatenate[LogState, P], R]) -> Callable[Concatenate[LogState, P], R]:
    """As `guarded`, for a function that leaves half a log when it fails: a full disk is LogDirError too."""

    @wraps(function)
    def changing(log: LogState, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with failing_takes_offline(log.log_dir):
            return function(log, *args, **kwargs)

    return changing


def remove_segments(log: LogState, segments: list[LogSegment], now_ms: int) -> None:
    """Remove segments from the log; their files are renamed now and removed after `file.delete.delay.ms`."""
    paths: list[str] = []
    log.unflushed.forget(segments)
    log.unflushed.has_renamed = True
    for segment in segments:
        log.segments_map.remove(segment.base_offset)
        try:
            segment.change_suffix("", names.DELETED_SUFFIX)
            paths += segment.files.paths()
            snapshot = log.snapshots.mark_deleted(segment.base_offset)
            if snapshot is not None:
                paths.append(snapshot)
        except OSError as error:
            if not is_disk_full(error):
                raise
            _remove_now(log, segment.base_offset)
        segment.close_handlers()
    log.schedule_deletion(paths, now_ms)


def _remove_now(log: LogState, base_offset: int) -> None:
    """Remove files where there is no space for other names. Readers hold the files open."""
    for suffix in (*names.SEGMENT_SUFFIXES, names.SNAPSHOT_SUFFIX):
        path = names.segment_file(log.directory, base_offset, suffix)
        unlink_if_exists(log.files, path)
        unlink_if_exists(log.files, path + names.DELETED_SUFFIX)
    log.snapshots.reload()


@_whole_or_offline
def truncate_to(log: LogState, target_offset: int, *, now_ms: int) -> bool:
    """Cut the log so that no record at or above the offset is left; whether one was (UnifiedLog.truncateTo).

    Batches are removed whole: where one held the offset, the log ends at the base offset of that batch. Kafka's log
    would end at the offset, with a hole before it that a recovery cannot tell from a lost end. Raises LogDirError.
    """
    if target_offset < 0:
        raise ValueError(f"Cannot truncate partition {log.partition} to a negative offset ({target_offset}).")
    if target_offset >= log.log_end_offset:
        # The epoch of a leader that never appended may begin here, and contradict the next leader's.
        log.epochs.truncate_from_end(log.log_end_offset)
        return False
    logger.info("Truncating %s to offset %d", log.partition, target_offset)
    if log.segments_map.first.base_offset > target_offset:
        truncate_fully_and_start_at(log, target_offset, now_ms=now_ms)
        return True
    log.truncations += 1
    segments = log.segments_map
    if target_offset < segments.active.base_offset:
        log.abort_cleaning()
    remove_segments(log, [s for s in segments.all() if s.base_offset > target_offset], now_ms)
    active = segments.active
    active.become_active()
    target_offset = _batch_boundary(active, target_offset)
    active.truncate_to(target_offset)
    _set_log_end(log, target_offset)
    _limit_cleaner_offset(log)
    log.epochs.truncate_from_end(target_offset)
    log.log_start_offset = min(target_offset, log.log_start_offset)
    _rebuild_producer_state(log, target_offset, now_ms)
    log.update_first_unstable_offset()
    log.update_high_watermark(log.high_watermark)
    log.check_order()
    return True


def _batch_boundary(segment: LogSegment, offset: int) -> int:
    """The base offset of the batch that holds an offset; the offset itself where none does."""
    found = segment.translate_offset(offset)
    if found is None:
        return offset
    _, header = next(iter(segment.records.headers(found.position)))
    return min(header.base_offset, offset)


@_whole_or_offline
def truncate_fully_and_start_at(
    log: LogState, new_offset: int, *, now_ms: int, log_start_offset: int | None = None
) -> None:
    """Remove everything and start at an offset (UnifiedLog.truncateFullyAndStartAt). Raises LogDirError."""
    logger.info("Truncate %s fully and start at offset %d", log.partition, new_offset)
    log.truncations += 1
    log.abort_cleaning()
    segments = log.segments_map
    remove_segments(log, segments.all(), now_ms)
    segments.add(log.new_segment(new_offset, now_ms))
    _set_log_end(log, new_offset)
    _limit_cleaner_offset(log)
    log.epochs.clear()
    log.snapshots.truncate_fully_and_start_at(new_offset)
    log.log_start_offset = new_offset if log_start_offset is None else log_start_offset
    _rebuild_producer_state(log, new_offset, now_ms)
    log.update_first_unstable_offset()
    log.update_high_watermark(new_offset)
    log.check_order()


def _rebuild_producer_state(log: LogState, end_offset: int, now_ms: int) -> None:
    start = log.log_start_offset
    rebuild_producer_state(log.snapshots, log.segments_map, start, end_offset, now_ms=now_ms, sync=False)


def _set_log_end(log: LogState, offset: int) -> None:
    log.log_end_offset = offset
    log.recovery_point = min(log.recovery_point, offset)
    log.recovery_point_max = NO_LIMIT
    log.bound_cache = NOTHING_CACHED


def _limit_cleaner_offset(log: LogState) -> None:
    """The active segment is not clean (LogManager.maybeTruncateCleanerCheckpoint...)."""
    if log.cleaner_offset is not None:
        log.cleaner_offset = min(log.cleaner_offset, log.segments_map.active.base_offset)


def increment_log_start_offset(log: LogState, offset: int) -> bool:
    """Move the log start offset forward (DeleteRecords, retention, a leader's response); whether it moved."""
    if offset > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Cannot increment the log start offset to {offset} of partition {log.partition} since it is larger than "
            f"the high watermark {log.high_watermark}",
        )
    if offset <= log.log_start_offset:
        return False
    log.log_start_offset = offset
    log.recovery_point = max(log.recovery_point, offset)
    log.epochs.truncate_from_start(offset)
    log.snapshots.on_log_start_offset_incremented(offset)
    log.update_first_unstable_offset()
    log.check_order()
    logger.info("Incremented log start offset of %s to %d", log.partition, offset)
    return True


@guarded
def delete_old_segments(log: LogState, now_ms: int, *, below: int = NO_LIMIT) -> int:
    """Retention: by log start offset always, by size and time if the policy includes delete; segments removed.

    Removes a few of the oldest ones; 0 if there are no more. Segments that begin at or above `below` stay.
    Raises KAFKA_STORAGE_ERROR, LogDirError.
    """
    start = log.log_start_offset
    deleted = _delete_while(
        log, lambda _, following: following is not None and following.base_offset <= start, now_ms, below
    )
    config = log.config
    if not config.delete:
        return deleted
    if config.retention_bytes >= 0:
        deleted += _delete_by_size(log, log.size - config.retention_bytes, now_ms, below)
    if config.retention_ms >= 0:
        limit = now_ms - config.retention_ms
        deleted += _delete_while(log, lambda segment, _: _is_before(segment, limit), now_ms, below)
    return deleted


def _is_before(segment: LogSegment, limit_ms: int) -> bool:
    """Whether all records of a segment are older, not on the word of their headers alone."""
    return segment.max_timestamp < limit_ms and segment.certain_timestamp < limit_ms


@guarded
def undecided_segment(log: LogState, now_ms: int) -> LogSegment | None:
    """The first segment that time would remove, or clean, but for what its headers can't prove.

    Its records have to be read (`storage.cleaning.timestamps`); then `LogSegment.learn_timestamps`. Raises
    KAFKA_STORAGE_ERROR, LogDirError.
    """
    config, segments, found = log.config, log.segments_map, None
    if config.delete and config.retention_ms >= 0:
        found = _first_undecided(segments.all(), now_ms - config.retention_ms)
    if found is None and config.compact and config.min_compaction_lag_ms > 0:
        dirty = segments.from_offset(log.cleaner_offset or 0, segments.active.base_offset)
        found = _first_undecided(dirty, now_ms - config.min_compaction_lag_ms + 1)
    return found


def _first_undecided(segments: list[LogSegment], limit_ms: int) -> LogSegment | None:
    for segment in segments:
        if not _is_before(segment, limit_ms):
            is_known = segment.max_timestamp >= limit_ms or segment.walked_bytes == segment.size
            return None if is_known else segment
    return None


def _delete_by_size(log: LogState, excess: int, now_ms: int, below: int) -> int:
    left = excess

    def superfluous(segment: LogSegment, _: LogSegment | None) -> bool:
        nonlocal left
        if left - segment.size < 0:
            return False
        left -= segment.size
        return True

    return 0 if excess < 0 else _delete_while(log, superfluous, now_ms, below)


def _delete_while(
    log: LogState, predicate: Callable[[LogSegment, LogSegment | None], bool], now_ms: int, below: int
) -> int:
    """Remove the first segments while they begin below an offset and the predicate holds.

    None that reaches the high watermark is removed, and no more than SEGMENTS_AT_ONCE.
    """
    deletable: list[LogSegment] = []
    segments = log.segments_map.all()
    for slot, segment in enumerate(segments):
        following = segments[slot + 1] if slot + 1 < len(segments) else None
        end_offset = log.log_end_offset if following is None else following.base_offset
        if segment.base_offset >= below or log.high_watermark < end_offset or not predicate(segment, following):
            break
        if following is None and segment.size == 0:
            break
        deletable.append(segment)
        if len(deletable) == SEGMENTS_AT_ONCE:
            break
    if not deletable:
        return 0
    if len(deletable) == len(segments):
        log.roll(now_ms)
    following = log.segments_map.higher(deletable[-1].base_offset)
    assert following is not None, "a log keeps its active segment"
    increment_log_start_offset(log, following.base_offset)
    logger.info("Deleting segments of %s by retention: %s", log.partition, deletable)
    remove_segments(log, deletable, now_ms)
    return len(deletable)
