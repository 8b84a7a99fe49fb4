"""Cleaning a log inside the test: planner, cleaner and swap, as the broker's LogCleaner drives them."""

from __future__ import annotations

from collections.abc import Iterator

from kpybroker.core.log.cleaner_plan import LogToClean, log_to_clean
from kpybroker.storage.cleaning.cleaned import cleaning_job, remove_leftovers, swap_in
from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, CleaningJob, Mapped, clean
from kpybroker.storage.log.log import Log
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.record import Record, iter_records
from tests.support.storage.batches import NOW_MS

MAP_BYTES = 24 * 10_000


def job_for(
    log: Log, *, now_ms: int = NOW_MS, map_bytes: int = MAP_BYTES, io_bytes: int = 1 << 20
) -> tuple[LogToClean, CleaningJob]:
    target = log_to_clean(log, now_ms)
    return target, cleaning_job(log, target, now_ms=now_ms, map_bytes=map_bytes, map_load_factor=0.9, io_bytes=io_bytes)


def clean_log(log: Log, *, now_ms: int = NOW_MS, map_bytes: int = MAP_BYTES, io_bytes: int = 1 << 20) -> Cleaned | None:
    """One cleaning, however dirty the log is; None where there is nothing to clean."""
    target, job = job_for(log, now_ms=now_ms, map_bytes=map_bytes, io_bytes=io_bytes)
    if target.cleanable_bytes == 0:
        return None
    done = None
    log.cleaning = lambda: None
    for event in clean(log.files, job, lambda size: None):
        if isinstance(event, CleanedSegment):
            swap_in(log, event, now_ms)()
        elif isinstance(event, Cleaned):
            done = event
        else:
            assert isinstance(event, Mapped)
    assert done is not None
    log.cleaning = None
    log.cleaner_offset = done.end_offset
    remove_leftovers(log.files, log.directory)
    return done


def clean_fully(log: Log, *, now_ms: int = NOW_MS, map_bytes: int = MAP_BYTES) -> None:
    """Until everything that may be cleaned is."""
    for _ in range(1000):
        if clean_log(log, now_ms=now_ms, map_bytes=map_bytes) is None:
            return
    raise AssertionError("the cleaner makes no progress")


def batches_of(log: Log) -> Iterator[tuple[BatchHeader, list[Record]]]:
    """Every batch of the log, empty ones and markers too."""
    for segment in log.segments():
        for _, header, batch in segment.records.batches():
            yield header, list(iter_records(batch, header))
