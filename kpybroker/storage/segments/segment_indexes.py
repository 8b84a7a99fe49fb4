"""The offset and time index of one segment: two files that are opened at first use (Kafka's LazyIndex).

What is opened is checked, and CorruptIndexError raised if it contradicts itself: the segment, which has the batches,
makes both anew then, of what `walk` says they should hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import is_disk_full
from kpybroker.storage.disk.files import Files, unlink_if_exists
from kpybroker.storage.segments.index import INT32_MAX, IndexFile, OffsetIndex, TimeIndex
from kpybroker.wire.records.batch import NO_TIMESTAMP, BatchHeader, corrupt

PathOf = Callable[[str], str]
"""The path of a segment's file by its kind (`.index`)."""


class SegmentIndexes:
    """`offset` and `time` are None until they are opened."""

    __slots__ = ("_base_offset", "_files", "_max_bytes", "offset", "time")

    def __init__(self, files: Files, base_offset: int, max_bytes: int) -> None:
        self._files = files
        self._base_offset = base_offset
        self._max_bytes = max_bytes
        self.offset: OffsetIndex | None = None
        self.time: TimeIndex | None = None

    def open_offset(self, path_of: PathOf, *, active: bool, log_size: int) -> OffsetIndex:
        path = path_of(names.INDEX_SUFFIX)
        index = OffsetIndex(self._files, path, self._base_offset, self._max_bytes, active=active)
        index.sanity_check(log_size)
        self.offset = index
        return index

    def open_time(self, path_of: PathOf, *, active: bool) -> TimeIndex:
        path = path_of(names.TIME_INDEX_SUFFIX)
        index = TimeIndex(self._files, path, self._base_offset, self._max_bytes, active=active)
        index.sanity_check()
        self.time = index
        return index

    def opened(self) -> Iterator[IndexFile]:
        for index in (self.offset, self.time):
            if index is not None:
                yield index.file

    def keep_open(self, keep: bool) -> None:
        for file in self.opened():
            file.keep_open(keep)
            file.close()

    def write_out(self) -> bool:
        """Whether the files have all entries now; False on a full disk. Raises any other OSError."""
        try:
            for file in self.opened():
                file.write_out()
        except OSError as error:
            if not is_disk_full(error):
                raise
            return False
        return True

    def rename(self, kind: str, old: str, new: str) -> None:
        """One of the files; if it was never opened it may not be there."""
        index = self.offset if kind == names.INDEX_SUFFIX else self.time
        if index is not None:
            index.file.rename_to(new)
        elif self._files.stat(old) is not None:
            self._files.rename(old, new)

    def move_to(self, path_of: PathOf) -> None:
        """The directory was renamed."""
        if self.offset is not None:
            self.offset.file.path = path_of(names.INDEX_SUFFIX)
        if self.time is not None:
            self.time.file.path = path_of(names.TIME_INDEX_SUFFIX)

    def close(self) -> None:
        for file in self.opened():
            file.close()
        self.offset = self.time = None

    def remove(self, path_of: PathOf) -> None:
        self.close()
        for kind in (names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
            unlink_if_exists(self._files, path_of(kind))


class Walked(NamedTuple):
    """What the indexes of a segment should hold: an entry is (last offset, position, largest timestamp, its offset)."""

    entries: list[tuple[int, int, int, int]]
    last_position: int
    max_timestamp: int
    offset_of_max_timestamp: int


def walk(headers: Iterable[tuple[int, BatchHeader]], base_offset: int, interval_bytes: int, name: object) -> Walked:
    """From a segment's batches, with their positions. Raises CORRUPT_MESSAGE where their offsets make no sense."""
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
