"""The records of a batch of any magic."""

from __future__ import annotations

from collections.abc import Iterator

from kpybroker.wire.primitives import Buffer
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.default_record import (
    DEFAULT_MAX_BYTES,
    INT64_MAX,
    READ_HEADERS_MAX,
    Record,
    iter_default_records,
)
from kpybroker.wire.records.legacy import iter_legacy_records

__all__ = ["DEFAULT_MAX_BYTES", "READ_HEADERS_MAX", "Record", "iter_records"]


def iter_records(
    buffer: Buffer,
    header: BatchHeader,
    position: int = 0,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    headers_max: int = INT64_MAX,
    read_headers_max: int = READ_HEADERS_MAX,
) -> Iterator[Record]:
    """The records of the batch at `position` as stored: a magic 0/1 message is a batch of one, or a wrapper's content.

    At most `max_bytes` are decompressed, and at most `headers_max` headers walked (MESSAGE_TOO_LARGE above it). Of each
    record, at most `read_headers_max` headers are read, and the others counted; 0 is for readers that need none.
    Bytes that are not records raise INVALID_RECORD, those that do not decompress CORRUPT_MESSAGE. The batch's CRC is
    not checked here, and the records before damaged bytes are yielded before the error: call `batch.verify_crc` first.
    """
    if header.magic < 2:
        return iter_legacy_records(buffer, header, position, max_bytes=max_bytes)
    return iter_default_records(
        buffer, header, position, max_bytes, headers_max=headers_max, read_headers_max=read_headers_max
    )
