"""The offset checkpoints of the log directories: which offset of a log each one keeps, and the jobs that write them.

The offsets are taken on the loop, when a job is made; a thread writes them. How one is written and read: `log_dir`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import attrgetter

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.directories.log_dir import Captured, LogDirectory
from kpybroker.storage.disk import names
from kpybroker.storage.disk.deletions import Job
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.log import Log

_partition_of: Callable[[Log], TopicPartition] = attrgetter("partition")


def _start_within_segment(log: Log) -> int | None:
    start = log.log_start_offset
    return start if start > log.segments_map.first.base_offset else None


OFFSET_OF: dict[str, Callable[[Log], int | None]] = {
    names.RECOVERY_POINT_CHECKPOINT: attrgetter("recovery_point"),
    names.LOG_START_OFFSET_CHECKPOINT: _start_within_segment,
    names.HIGH_WATERMARK_CHECKPOINT: attrgetter("high_watermark"),
    # A copy on its way to another directory is never cleaned.
    names.CLEANER_OFFSET_CHECKPOINT: lambda log: None if log.is_future else log.cleaner_offset,
}
"""The offset that each checkpoint keeps of a log; a log with None is left out."""


def checkpoint_job(
    name: str, directories: Collection[LogDirectory], logs: Collection[Log], *, is_last: bool = False
) -> Job:
    """A job for a thread that writes a checkpoint of these directories where it changed. It raises LogDirError.

    The last one before a stop is written anyway: an earlier try that a full disk ended may have left half of a file. So
    is that of log starts while segments of a log were removed and no flush has made that durable. A power cut would
    bring them back, and with them what is before the log start, which is in no checkpoint once a segment begins there;
    on a journaled file system their renames become durable with the checkpoint.
    """
    writers = []
    for directory in directories:
        its_logs = [log for log in logs if log.log_dir == directory.path]
        captured = _capture(its_logs, OFFSET_OF[name])
        is_written = is_last and name != names.CLEANER_OFFSET_CHECKPOINT
        if name == names.LOG_START_OFFSET_CHECKPOINT:
            is_written |= any(log.unflushed.has_renamed for log in its_logs)
        if is_written or not directory.is_on_disk(name, captured):
            writers.append(directory.offsets_writer(name, captured))
    return partial(_run_all, writers)


def _capture(logs: Sequence[Log], offset_of: Callable[[Log], int | None]) -> Captured:
    """By `map`, since every few seconds 10 000 logs are asked."""
    offsets = list(map(offset_of, logs))
    if None in offsets:
        logs = [log for log, offset in zip(logs, offsets, strict=True) if offset is not None]
    return Captured(tuple(map(_partition_of, logs)), tuple(offset for offset in offsets if offset is not None))


def _run_all(jobs: Sequence[Job]) -> None:
    """Run each, even if others fail; then raise the first failure."""
    failure: LogDirError | None = None
    for job in jobs:
        try:
            job()
        except LogDirError as error:
            failure = failure or error
    if failure is not None:
        raise failure
