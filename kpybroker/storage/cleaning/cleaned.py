"""The log's side of a cleaning, on the loop: the job for the cleaner, and the swap of its segments into the log.

`log.cleaning` is set while a cleaning is in progress; the log cancels it (`Log.abort_cleaning`) when its segments
change in another way. Segments that the cleaner finishes after that are not used.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kpybroker.storage.cleaning.cleaner import CleanedSegment, CleaningJob
from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import failing_takes_offline
from kpybroker.storage.disk.files import Files, unlink_if_exists
from kpybroker.storage.log.log_state import NOTHING_CACHED
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.storage.segments.segment_list import open_segment
from kpybroker.storage.segments.swap import replace_segments

if TYPE_CHECKING:
    from kpybroker.core.log.cleaner_plan import LogToClean
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.log.LogCleaner")


def cleaning_job(
    log: Log, target: LogToClean, *, now_ms: int, map_bytes: int, map_load_factor: float, io_bytes: int
) -> CleaningJob:
    """The job for a cleaner. Leaves out producers whose last record is beyond the cleaned range."""
    config, end = log.config, target.first_uncleanable_offset
    return CleaningJob(
        log.directory,
        log.segments_map.base_offsets,
        target.first_dirty_offset,
        end,
        now_ms,
        config.delete_retention_ms,
        config.segment_bytes,
        config.segment_index_bytes,
        config.index_interval_bytes,
        map_bytes,
        map_load_factor,
        io_bytes,
        [
            (entry.producer_id, entry.last_data_offset, entry.producer_epoch)
            for entry in log.producers.producers.values()
            if entry.last_data_offset < end
        ],
    )


def swap_in(log: Log, cleaned: CleanedSegment, now_ms: int) -> Callable[[], None]:
    """Put a cleaned segment in the place of those it was made of.

    Returns a job for a thread that syncs the directory; only after it may the checkpoint say that the segment is clean.
    Both raise LogDirError: the next load of the directory finishes or undoes half a swap.
    """
    assert log.cleaning is not None, f"{cleaned} is of a cleaning of {log} that was cancelled"
    segments = log.segments_map
    old = [segment for base in cleaned.replaces if (segment := segments.get(base)) is not None]
    assert len(old) == len(cleaned.replaces), f"{log} lost segments of {cleaned} without aborting its cleaning"
    assert segments.active not in old, f"the active segment of {log} was cleaned"
    with failing_takes_offline(log.log_dir):
        files = SegmentFiles(log.files, log.directory, cleaned.base_offset, names.CLEANED_SUFFIX)
        new = open_segment(files, log.config, now_ms=now_ms)
        logger.info("Swapping in cleaned segment %s for segment(s) %s in log %s", new, old, log)
        paths = replace_segments(log.files, log.directory, segments, [new], old, sync=False)
        for segment in old:
            if segment.base_offset != new.base_offset:
                snapshot = log.snapshots.mark_deleted(segment.base_offset)
                paths += [] if snapshot is None else [snapshot]
    log.unflushed.forget(old)
    log.bound_cache = NOTHING_CACHED
    log.schedule_deletion(paths, now_ms)
    return partial(_sync_directory, log.files, log.log_dir, log.directory)


def _sync_directory(files: Files, log_dir: str, directory: str) -> None:
    with failing_takes_offline(log_dir), contextlib.suppress(FileNotFoundError):  # renamed for deletion since
        files.sync_dir(directory)


def remove_leftovers(files: Files, directory: str) -> None:
    """Remove what a stopped cleaning left. Only when no cleaner writes there any more."""
    with contextlib.suppress(FileNotFoundError):
        for entry in files.listdir(directory):
            if entry.name.endswith(names.CLEANED_SUFFIX):
                unlink_if_exists(files, f"{directory}/{entry.name}")
