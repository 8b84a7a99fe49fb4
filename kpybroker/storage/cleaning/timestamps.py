"""Reading the timestamps of a segment's records, before time removes it (`LogSegment.learn_timestamps`).

Runs in the cleaner's process. Memory is bounded by the largest batch and by `RECORDS_MAX_BYTES` of what it uncompresses
to; time by the job. What can't be read within these bounds, or is damaged, makes the result incomplete, and then the
age of the file decides.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from kpybroker.storage.cleaning.cleaner import Tick
from kpybroker.storage.cleaning.filter import RECORDS_MAX_BYTES
from kpybroker.storage.disk.files import Files, read_exactly
from kpybroker.storage.segments.file_records import walk_headers
from kpybroker.wire.constants import NO_TIMESTAMP, UNKNOWN_OFFSET
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.claims import largest_timestamp

IO_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TimestampsJob:
    """The part of a segment's file to read, whole batches, and how long that may take."""

    path: str
    start: int
    end: int
    seconds_max: float


class Timestamps(NamedTuple):
    """The largest timestamp of the records, and the last offset of the first batch that has it; -1 without records."""

    max_timestamp: int
    offset: int
    is_complete: bool


def read_timestamps(files: Files, job: TimestampsJob, tick: Tick) -> Timestamps:
    """Read every record's timestamp. Raises OSError."""
    deadline = time.monotonic() + job.seconds_max
    largest, offset, is_complete = NO_TIMESTAMP, UNKNOWN_OFFSET, True
    file = files.open(job.path, writable=False)
    try:

        def read(position: int, size: int) -> bytes:
            return read_exactly(file, size, position)

        window, window_start = b"", job.start
        for position, header in walk_headers(read, job.path, job.start, job.end):
            if time.monotonic() > deadline:
                return Timestamps(largest, offset, False)
            if position + header.size > window_start + len(window):
                window_start = position
                window = read(position, min(max(IO_BYTES, header.size), job.end - position))
                tick(len(window))
            try:
                timestamp = largest_timestamp(window, position - window_start, header, RECORDS_MAX_BYTES)
            except KafkaError:
                is_complete = False
                continue
            if timestamp > largest:
                largest, offset = timestamp, header.last_offset
    except KafkaError:  # no batch begins where one should
        is_complete = False
    finally:
        file.close()
    return Timestamps(largest, offset, is_complete)
