"""Retention by time where a segment's headers say that it is old, and its file that it is not.

Headers are what clients claim, and a wrong one must not remove a record. A segment whose file was last changed before
the limit holds no record that has been in the log for less than the limit; nearly every segment is removed so. Of any
other, written from old records or by a client whose headers are wrong, the records are read first, in a process of
their own, once: `LogSegment.learn_timestamps` remembers what was found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.loop.yielding import ELEMENT, SLICE_UNITS, YieldBudget
from kpybroker.broker.maintenance.cleaner_process import CleanerProcess
from kpybroker.broker.maintenance.undecided import undecided
from kpybroker.storage.cleaning.process import IO_ERROR, Failed, encode_job
from kpybroker.storage.cleaning.timestamps import Timestamps, TimestampsJob
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.maintenance import guarded

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.storage.log.log import Log
    from kpybroker.storage.segments.segment import LogSegment

logger = logging.getLogger("kafka.log.LogManager")

SEGMENT_S_MAX = 60.0
"""For the records of one segment; a segment that takes longer is removed by the age of its file."""
RUN_S_MAX = 60.0
"""No walk begins later in one run. The next run goes on."""


async def delete_by_read_timestamps(host: Host, logs: Iterable[Log]) -> None:
    """Read what has to be read of these logs, and remove the segments that time may remove after all.

    Removes nothing where nothing had to be read. A log directory that fails goes offline.
    """
    process = CleanerProcess()
    budget = YieldBudget()
    end = trio.current_time() + RUN_S_MAX
    try:
        for log in logs:
            await budget.spend()
            if not process.is_idle:  # it has ended in the middle of a job: what ended it must not stop the others
                await process.close()
                process = CleanerProcess()
            try:
                await _read_log(host, process, log, end)
            except LogDirError as error:
                host.log_dir_failed(error)
    finally:
        await process.close()


async def _read_log(host: Host, process: CleanerProcess, log: Log, end: float) -> None:
    now_ms = host.clock.time_ms()
    was_read = False
    while (segment := undecided(log, now_ms)) is not None and trio.current_time() < end:
        if not await _read(host, process, log, segment):
            return
        was_read = True
    if was_read:
        budget = YieldBudget()
        for removed in host.logs.delete_old_segments(log, now_ms):
            await budget.spend(SLICE_UNITS if removed else ELEMENT)


async def _read(host: Host, process: CleanerProcess, log: Log, segment: LogSegment) -> bool:
    """Read the records that no walk has read; whether that is done, and the segment is still the log's."""
    end, truncations = segment.size, log.truncations
    job = TimestampsJob(segment.records.path, segment.walked_bytes, end, SEGMENT_S_MAX)
    await process.start()
    await process.send(encode_job(job, host.config.get_float("log.cleaner.io.max.bytes.per.second")))
    found = await process.receive()
    if log.is_closed or log.truncations != truncations or log.segments_map.get(segment.base_offset) is not segment:
        return False
    match found:
        case Timestamps(max_timestamp, offset, is_complete):
            if max_timestamp > segment.max_timestamp:
                logger.warning(
                    "Headers of batches are wrong: segment=%s max_timestamp=%d, of its records %d",
                    *(segment, segment.max_timestamp, max_timestamp),
                )
            guarded(lambda _: segment.learn_timestamps(end, max_timestamp, offset, is_complete))(log)
            return True
        case Failed(kind, message, _) if kind == IO_ERROR:
            raise LogDirError(log.log_dir, message)
    logger.warning("Reading the timestamps of %s failed, and is tried again: %s", segment, found)
    return False
