"""Find records by timestamp within one batch, for ListOffsets."""

from __future__ import annotations

from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.default_record import DEFAULT_MAX_BYTES
from kpybroker.wire.records.record import iter_records


def find_in_batch(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    timestamp: int,
    start_offset: int = 0,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at or after both `timestamp` and `start_offset`, or None.

    Whether the batch may have such a record by its header's largest timestamp is for the caller to say.
    """
    if header.last_offset < start_offset:
        return None
    for record in iter_records(buffer, header, position, max_bytes=max_bytes, read_headers_max=0):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return record.offset, record.timestamp
    return None
