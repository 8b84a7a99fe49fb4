"""The offset, time and transaction index of one segment: files that are opened at first use (Kafka's LazyIndex).

An index is checked when it is opened; CorruptIndexError is raised if it contradicts itself. The segment, which has the
batches, then rebuilds both from what `walk` finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import CorruptIndexError, is_disk_full
from kpybroker.storage.disk.files import Files, unlink_if_exists
from kpybroker.storage.disk.slice import LazyFile
from kpybroker.storage.segments.index import IndexFile, OffsetIndex, TimeIndex
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.storage.segments.txn_index import TransactionIndex
from kpybroker.wire.constants import INT32_MAX, NO_TIMESTAMP
from kpybroker.wire.records.batch import BatchHeader, corrupt


class SegmentIndexes:
    """The indexes; `offset` and `time` are None until they are opened."""

    __slots__ = ("_files", "_max_bytes", "_transactions", "offset", "time")

    def __init__(self, files: SegmentFiles, max_bytes: int) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self.offset: OffsetIndex | None = None
        self.time: TimeIndex | None = None
        self._transactions: TransactionIndex | None = None

    def open_offset(self, *, active: bool, log_size: int) -> OffsetIndex:
        """The offset index, opened or created if it was not open. Raises CorruptIndexError, OSError."""
        if self.offset is not None:
            return self.offset
        index = OffsetIndex(*self._place(names.INDEX_SUFFIX), active=active)
        index.sanity_check(log_size)
        self.offset = index
        return index

    def open_time(self, *, active: bool) -> TimeIndex:
        """The time index, opened or created if it was not open. Raises CorruptIndexError, OSError."""
        if self.time is not None:
            return self.time
        index = TimeIndex(*self._place(names.TIME_INDEX_SUFFIX), active=active)
        index.sanity_check()
        self.time = index
        return index

    @property
    def transactions(self) -> TransactionIndex:
        """The transaction index; its file is read at first use, and exists once there was an abort."""
        index = self._transactions
        if index is None:
            files = self._files
            path = files.path(names.TXN_INDEX_SUFFIX)
            index = self._transactions = TransactionIndex(files.files, path, files.base_offset)
        return index

    def _place(self, kind: str) -> tuple[Files, str, int, int]:
        return self._files.files, self._files.path(kind), self._files.base_offset, self._max_bytes

    def opened(self) -> Iterator[IndexFile]:
        """The index files that are open."""
        for index in (self.offset, self.time):
            if index is not None:
                yield index.file

    def handles(self) -> Iterator[LazyFile]:
        """The files that were used: of each index that is open."""
        for file in self.opened():
            yield file.handle
        if self._transactions is not None:
            yield self._transactions.handle

    def sync(self) -> None:
        """Make all of them durable. Raises OSError."""
        for file in self.opened():
            file.sync()
        if self._transactions is not None:
            self._transactions.handle.sync()

    def keep_open(self, keep: bool) -> None:
        """Keep the files open between uses, or not; writes all entries. Raises OSError."""
        for file in self.opened():
            file.keep_open(keep)
            file.handle.close()

    def write_out(self) -> bool:
        """Write all entries to the files; False on a full disk. Raises any other OSError."""
        try:
            for file in self.opened():
                file.write_out()
        except OSError as error:
            if not is_disk_full(error):
                raise
            return False
        return True

    def rename(self, kind: str, new: str) -> None:
        """Rename one of the files, if it exists, to the path `new`. Raises OSError."""
        path = self._files.path(kind)
        handle = next((handle for handle in self.handles() if handle.path == path), None)
        (handle or LazyFile(self._files.files, path, create=False)).rename_to(new)

    def check_entry(self, header: BatchHeader, offset: int, position: int, name: object) -> None:
        """Raise CorruptIndexError unless an entry's offset is the last of the batches appended at its position.

        `header` is of the batch there, the first of them: it ends at or before the offset.
        """
        if header.last_offset > offset or header.base_offset < self._files.base_offset:
            raise CorruptIndexError(
                f"{name}: the index names offset {offset} at position {position}, where the batch is "
                f"{header.base_offset}..{header.last_offset}"
            )

    def update_paths(self) -> None:
        """Take over the paths of a directory that was renamed."""
        if self.offset is not None:
            self.offset.file.handle.path = self._files.path(names.INDEX_SUFFIX)
        if self.time is not None:
            self.time.file.handle.path = self._files.path(names.TIME_INDEX_SUFFIX)
        if self._transactions is not None:
            self._transactions.handle.path = self._files.path(names.TXN_INDEX_SUFFIX)

    def rest(self) -> None:
        """Close the files and forget what the next use reads again, if there is nothing to write or to sync."""
        if all(file.is_settled for file in self.opened()):
            self.close()
        if self._transactions is not None and not self._transactions.handle.dirty:
            self.close_transactions()
            self._transactions = None

    def close_transactions(self) -> None:
        """Close the file of the transaction index until the next use."""
        if self._transactions is not None:
            self._transactions.handle.close()

    def close(self) -> None:
        """Close the files of offsets and times, and forget the entries that were not written."""
        for file in self.opened():
            file.handle.close()
        self.offset = self.time = None

    def make_empty(self) -> None:
        """Close the files and remove those that have something in them: an empty one is as good as a new one, which
        takes a file system five times as long. Raises OSError.
        """
        self.close()
        for kind in (names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
            found = self._files.files.stat(path := self._files.path(kind))
            if found is not None and found.size:
                unlink_if_exists(self._files.files, path)


class Walked(NamedTuple):
    """What the indexes of a segment should hold: an entry is (last offset, position, largest timestamp, its offset)."""

    entries: list[tuple[int, int, int, int]]
    last_position: int
    max_timestamp: int
    offset_of_max_timestamp: int


def walk(headers: Iterable[tuple[int, BatchHeader]], base_offset: int, interval_bytes: int, name: object) -> Walked:
    """The index entries for these batches, given with their positions.

    Raises CORRUPT_MESSAGE for offsets that cannot be.
    """
    entries, indexed = [], 0
    timestamp, offset = NO_TIMESTAMP, base_offset
    before = base_offset - 1
    for position, header in headers:
        if not before < header.base_offset <= header.last_offset <= base_offset + INT32_MAX:
            raise corrupt(f"{name} has a batch of offsets {header.base_offset}..{header.last_offset}")
        before = header.last_offset
        if header.max_timestamp > timestamp:
            timestamp, offset = header.max_timestamp, header.last_offset
        if position - indexed > interval_bytes:
            entries.append((header.last_offset, position, timestamp, offset))
            indexed = position
    return Walked(entries, indexed, timestamp, offset)
