"""The `.log` file of a segment: append, slices, truncation, and walking over batch headers (Kafka's FileRecords).

`size` is counted here and not taken from the file system: a write that fails halfway is cut back, and bytes after
`size` do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kpybroker.storage.disk.files import Buffer, read_exactly, unlink_if_exists, write_all
from kpybroker.storage.disk.names import LOG_SUFFIX
from kpybroker.storage.disk.slice import FileSlice, SharedFile
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.records.batch import (
    HEADER_SIZE_UP_TO_MAGIC,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    corrupt,
    parse_header,
)
from kpybroker.wire.records.claims import largest_timestamp

# Bytes read at once by a walk over headers. Index entries lie about 4 KiB apart, so a lookup reads once or twice.
SEARCH_WINDOW = 8 * 1024
COPY_CHUNK = 1024 * 1024
READ_HERE_RECORDS_MAX, READ_HERE_BYTES_MAX = 10_000, 128 * 1024
"""Of a batch whose records are read on the loop."""


class BatchPosition(NamedTuple):
    """The position and size of a batch in the log file, in bytes."""

    position: int
    size: int


class FileRecords:
    """An open log file."""

    __slots__ = ("_names", "_shared", "dirty", "size")

    def __init__(self, names: SegmentFiles, *, create: bool = True, empty: bool = False) -> None:
        """With `empty`, what the file holds is preallocated space and not data."""
        self._names = names  # and not the path: there are ten thousand of them, of 130 bytes
        file = names.files.open(self.path, create=create)
        self._shared = SharedFile(file)
        self.size = 0 if empty else file.size()
        self.dirty = False

    def __repr__(self) -> str:
        return f"FileRecords(size={self.size}, file={self.path})"

    def __str__(self) -> str:
        return self.path

    @property
    def path(self) -> str:
        """Of the file."""
        return self._names.path(LOG_SUFFIX)

    @property
    def shared(self) -> SharedFile:
        """The open file, counted."""
        return self._shared

    def append(self, data: Buffer) -> None:
        """Write at the end. On OSError nothing was appended, and the file is cut back to what it was."""
        file, end, size = self._shared.file, self.size, len(data)
        try:
            written = file.pwrite(data, end)
            if written != size:
                write_all(file, memoryview(data)[written:], end + written)
        except OSError:
            file.truncate(end)
            raise
        self.size = end + size
        self.dirty = True

    def preallocate(self, size: int) -> None:
        """Give the file its later length at once (`preallocate`)."""
        self._shared.file.truncate(size)

    def trim(self) -> None:
        """Drop preallocated space after the data."""
        if self._shared.file.size() > self.size:
            self._shared.file.truncate(self.size)

    def slice(self, position: int, size: int) -> FileSlice:
        """A counted slice, cut at the end of the data."""
        return FileSlice(self._shared, position, min(size, self.size - position))

    def read(self, position: int, size: int) -> bytes:
        """Bytes, cut at the end of the data."""
        return read_exactly(self._shared.file, min(size, self.size - position), position)

    def truncate_to(self, size: int) -> int:
        """Cut the file to `size`; the number of bytes removed. A reader of the file keeps the old one."""
        removed = self.size - size
        if removed < 0 or size < 0:
            raise ValueError(f"Attempt to truncate {self} to {size} bytes")
        if removed == 0:
            return 0
        if self._shared.holders > 1:
            self._replace_with_prefix(size)
        else:
            self._shared.file.truncate(size)
        self.size = size
        self.dirty = True
        return removed

    def _replace_with_prefix(self, size: int) -> None:
        temporary = self.path + ".tmp"
        files = self._names.files
        unlink_if_exists(files, temporary)
        copy = files.open(temporary, create=True)
        try:
            position = 0
            while position < size:
                chunk = read_exactly(self._shared.file, min(COPY_CHUNK, size - position), position)
                write_all(copy, chunk, position)
                position += len(chunk)
            copy.sync()
            files.rename(temporary, self.path)
        except OSError:
            copy.close()
            raise
        self._shared.release()
        self._shared = SharedFile(copy)

    def sync(self) -> None:
        """Make the data durable where there are any new ones. Raises OSError."""
        if self.dirty:
            self._shared.file.sync()
            self.dirty = False

    def largest_timestamp(self, position: int, header: BatchHeader) -> int | None:
        """The largest timestamp of the records of a batch; None where there are too many to read here, or none can be
        read.
        """
        if header.records_count > READ_HERE_RECORDS_MAX:
            return None
        try:
            return largest_timestamp(self.read(position, header.size), 0, header, READ_HERE_BYTES_MAX)
        except KafkaError:
            return None

    def close(self) -> None:
        """Release the file; slices of it stay readable."""
        self._shared.release()

    def headers(
        self, position: int = 0, end: int | None = None, window: int = SEARCH_WINDOW
    ) -> Iterator[tuple[int, BatchHeader]]:
        """See `walk_headers`."""
        return walk_headers(self.read, self, position, self.size if end is None else end, window)

    def batches(
        self, position: int = 0, end: int | None = None, window: int = COPY_CHUNK
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """As `headers`, with the bytes of each batch; for walks that need them (recovery, producer state)."""
        data = memoryview(b"")
        data_start = position
        for at, header in self.headers(position, end):
            if at + header.size > data_start + len(data):
                limit = (self.size if end is None else end) - at
                data = memoryview(read_exactly(self._shared.file, min(max(window, header.size), limit), at))
                data_start = at
                if len(data) < header.size:
                    raise corrupt(f"{self.path} ends within the batch at {at}")
            yield at, header, data[at - data_start : at - data_start + header.size]


def walk_headers(
    read: Callable[[int, int], bytes], name: object, position: int, end: int, window: int = SEARCH_WINDOW
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every whole batch from `position`, which must be the start of a batch (FileLogInputStream).

    `read(position, size)` reads from the file called `name`. Raises CORRUPT_MESSAGE at a header that no batch can have.
    After a batch that is larger than a window only the next header is read: the one after that is as far away.
    """
    data = b""
    data_start = data_end = position
    size = 0
    while position < end - HEADER_SIZE_UP_TO_MAGIC:
        if (position + RECORD_BATCH_OVERHEAD > data_end and data_end < end) or position > data_end:
            data = read(position, min(window if size < window else RECORD_BATCH_OVERHEAD, end - position))
            data_start, data_end = position, position + len(data)
            if len(data) <= HEADER_SIZE_UP_TO_MAGIC:
                raise corrupt(f"{name} ends at {data_end} although it should have {end} bytes")
        header = parse_header(data, position - data_start)
        size = header.size
        if size > end - position:
            return
        yield position, header
        position += size
