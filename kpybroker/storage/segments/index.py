"""Offset and time index of a segment, byte for byte Kafka's (OffsetIndex, TimeIndex).

Offset index: 8 bytes an entry, offset relative to the segment's base (int32) and position in the log file (int32). The
entry names the *last* offset of the batch at the position. Time index: 12 bytes an entry, timestamp (int64) and
relative offset (int32) of the first batch whose maximum is that timestamp; timestamps never fall.

A difference that no reader sees: Kafka preallocates `segment.index.bytes`, maps the file, and trims it when the segment
is rolled or closed. Here entries are written at the end, so the file always has its trimmed length, and an unclean stop
leaves no zeros that look like entries. Lookups bisect with `pread`; a read at the tail needs none, as the last entry is
kept in memory. The file is open only while the index is active or being read, so an idle partition costs one
descriptor, not three. Entries of an unclean stop are not trusted: the loader rebuilds them. So an active index keeps
its latest entries in memory until there are some, or the file is synced or closed; writing each at once was a sixth of
the cost of an append of 16 KB.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import NamedTuple

from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import Files, read_exactly, write_all
from kpybroker.storage.disk.slice import LazyFile
from kpybroker.wire.constants import NO_TIMESTAMP

OFFSET_ENTRY = struct.Struct(">ii")  # relative offset, position
TIME_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

_UNWRITTEN_BYTES = 512  # that an active index keeps in memory
_BLOCK_BYTES = 4096  # a bisection reads single entries until what is left fits, then reads that at once


class OffsetPosition(NamedTuple):
    """An entry of the offset index, with the absolute offset."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """An entry of the time index, with the absolute offset."""

    timestamp: int
    offset: int


class Neighbours(NamedTuple):
    """The result of a search: a slot, the entry before it and its own; empty where there is none."""

    slot: int
    before: bytes
    at: bytes


class IndexFile:
    """Fixed-size entries in a file that is opened when needed."""

    __slots__ = ("_entry_size", "_keep_open", "_unwritten", "entries", "handle")

    def __init__(self, files: Files, path: str, entry_size: int, *, keep_open: bool) -> None:
        self.handle = LazyFile(files, path, create=False)
        self._entry_size = entry_size
        self._keep_open = keep_open
        self._unwritten = bytearray()  # the last entries, which the file does not have
        found = files.stat(path)
        if found is None:
            files.open(path, create=True).close()
            self.entries = 0
            self.handle.dirty = True
        else:
            self.entries, rest = divmod(found.size, entry_size)
            if rest:
                raise CorruptIndexError(
                    f"Index file {path} is corrupt, found {found.size} bytes which is neither positive nor a "
                    f"multiple of {entry_size}"
                )

    def append(self, entry: bytes) -> None:
        """Add an entry. On OSError nothing was added."""
        unwritten = self._unwritten
        if self._keep_open and len(unwritten) < _UNWRITTEN_BYTES:
            unwritten += entry
        else:
            self._write(unwritten + entry)
        self.entries += 1
        self.handle.dirty = True

    def write_out(self) -> None:
        """Write the entries that are only in memory. On OSError they are kept."""
        if self._unwritten:
            self._write(self._unwritten)

    def _write(self, unwritten: bytearray) -> None:
        write_all(self.handle.shared.file, unwritten, self._written * self._entry_size)
        self._unwritten.clear()
        self.handle.dirty = True

    @property
    def _written(self) -> int:
        """How many entries the file has."""
        return self.entries - len(self._unwritten) // self._entry_size

    def read(self, slot: int, count: int = 1) -> bytes:
        """The bytes of `count` entries. Raises CorruptIndexError where the file is too short."""
        data = self._block(slot, slot + count)
        self._settle()
        return data

    def first_above(self, field: struct.Struct, field_offset: int, target: int) -> Neighbours:
        """The first slot whose field is greater than the target; `entries` where none is."""
        size = self._entry_size

        def value(slot: int) -> int:
            found: int = field.unpack_from(block, (slot - first) * size + field_offset)[0]
            return found

        try:
            low, high = 0, self.entries
            while (high - low) * size > _BLOCK_BYTES:
                first = (low + high) // 2
                block = self._block(first, first + 1)
                if value(first) > target:
                    high = first
                else:
                    low = first + 1
            first, block = low, self._block(low, high)
            slot = bisect_right(range(high), target, low, key=value)
            return Neighbours(slot, self._entry(slot - 1, first, block), self._entry(slot, first, block))
        finally:
            self._settle()

    def _block(self, low: int, high: int) -> bytes:
        """The entries from one slot to another."""
        size, written = self._entry_size, self._written
        block = b""
        if low < written:
            wanted = (min(high, written) - low) * size
            block = read_exactly(self.handle.shared.file, wanted, low * size)
            if len(block) != wanted:
                raise CorruptIndexError(f"Index file {self.handle.path} has fewer than {written} entries")
        if high > written:
            block += self._unwritten[max(low - written, 0) * size : (high - written) * size]
        return block

    def _entry(self, slot: int, first: int, block: bytes) -> bytes:
        """Of a block that begins with the slot `first`, or read if it lies beyond; empty where there is none."""
        if not 0 <= slot < self.entries:
            return b""
        start = (slot - first) * self._entry_size
        return block[start : start + self._entry_size] if 0 <= start < len(block) else self._block(slot, slot + 1)

    def truncate(self, entries: int) -> None:
        """Keep the first `entries` entries. Raises OSError."""
        if entries >= self.entries:
            return
        written = self._written
        if entries < written:
            self.handle.shared.file.truncate(entries * self._entry_size)
        del self._unwritten[max(entries - written, 0) * self._entry_size :]
        self.entries = entries
        self.handle.dirty = True
        self._settle()

    def _settle(self) -> None:
        if not self._keep_open:
            self.handle.close()

    @property
    def is_settled(self) -> bool:
        """Whether all entries are in the file, and durable."""
        return not self._unwritten and not self.handle.dirty

    def keep_open(self, keep: bool) -> None:
        """Whether the file stays open between calls. On OSError nothing changes."""
        self.write_out()
        self._keep_open = keep
        self._settle()

    def sync(self) -> None:
        """Write all entries and make them durable. Raises OSError."""
        if self.handle.dirty:
            self.write_out()
            self.handle.sync()
            self._settle()


class OffsetIndex:
    """Positions of batches by offset."""

    __slots__ = ("base_offset", "file", "last_offset", "last_position", "max_entries")

    def __init__(self, files: Files, path: str, base_offset: int, max_index_bytes: int, *, active: bool = True) -> None:
        self.file = IndexFile(files, path, OFFSET_ENTRY.size, keep_open=active)
        self.base_offset = base_offset
        self.max_entries = max_index_bytes // OFFSET_ENTRY.size
        self._read_last()

    def _read_last(self) -> None:
        if self.file.entries == 0:
            self.last_offset, self.last_position = self.base_offset, 0
            return
        relative, position = OFFSET_ENTRY.unpack(self.file.read(self.file.entries - 1))
        self.last_offset, self.last_position = self.base_offset + relative, position

    @property
    def is_full(self) -> bool:
        """Whether `segment.index.bytes` is reached."""
        return self.file.entries >= self.max_entries

    def sanity_check(self, log_size: int) -> None:
        """Raise CorruptIndexError if the last entry cannot be right. Kafka 3.9 leaves this to recovery."""
        entries = self.file.entries
        if entries == 0:
            return
        if (
            self.last_offset < self.base_offset
            or not 0 <= self.last_position < log_size
            or (entries > 1 and self.last_position == 0)
        ):
            raise CorruptIndexError(
                f"Corrupt index found, index file {self.file.handle.path} has non-zero size but its last entry is "
                f"offset {self.last_offset} at position {self.last_position}, and the log has {log_size} bytes"
            )

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Raises CorruptIndexError where offsets would not rise, ValueError if full, OSError."""
        file = self.file
        if file.entries >= self.max_entries:
            raise ValueError(f"Attempt to append to a full index (size = {file.entries}).")
        if offset <= self.last_offset and file.entries:
            raise CorruptIndexError(
                f"Attempt to append an offset {offset} no larger than the last offset appended "
                f"({self.last_offset}) to {file.handle.path}"
            )
        file.append(OFFSET_ENTRY.pack(offset - self.base_offset, position))
        self.last_offset, self.last_position = offset, position

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry whose offset is not greater; (base offset, 0) where there is none."""
        if offset >= self.last_offset:
            return OffsetPosition(self.last_offset, self.last_position)
        found = self.file.first_above(_INT32, 0, offset - self.base_offset).before
        return self._parse(found) if found else OffsetPosition(self.base_offset, 0)

    def entry(self, slot: int) -> OffsetPosition:
        """The entry in a slot."""
        return self._parse(self.file.read(slot))

    def _parse(self, entry: bytes) -> OffsetPosition:
        relative, position = OFFSET_ENTRY.unpack(entry)
        return OffsetPosition(self.base_offset + relative, position)

    def fetch_upper_bound_offset(self, position: int) -> int | None:
        """The offset of the first entry at or after a position: batches before the position end at or below it."""
        if position > self.last_position or self.file.entries == 0:
            return None
        found = self.file.first_above(_INT32, 4, position - 1).at
        return self._parse(found).offset if found else None

    def truncate_to(self, offset: int) -> None:
        """Remove entries of this offset and above."""
        self._truncate_entries(self.file.first_above(_INT32, 0, offset - self.base_offset - 1).slot)

    def _truncate_entries(self, entries: int) -> None:
        self.file.truncate(entries)
        self._read_last()

    def drop_last(self, entries: int) -> None:
        """Keep the first `entries` entries: undoes an append that could not be completed."""
        self._truncate_entries(entries)


class TimeIndex:
    """Offsets of batches by timestamp."""

    __slots__ = ("base_offset", "file", "last_entry", "max_entries")

    def __init__(self, files: Files, path: str, base_offset: int, max_index_bytes: int, *, active: bool = True) -> None:
        self.file = IndexFile(files, path, TIME_ENTRY.size, keep_open=active)
        self.base_offset = base_offset
        self.max_entries = max_index_bytes // TIME_ENTRY.size
        self.last_entry = self._read_last()

    def _read_last(self) -> TimestampOffset:
        entries = self.file.entries
        return self.entry(entries - 1) if entries else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    @property
    def is_full(self) -> bool:
        """Whether one slot is left, which is kept for the entry that a roll adds."""
        return self.file.entries >= self.max_entries - 1

    def sanity_check(self) -> None:
        """Raise CorruptIndexError if the last entry cannot be right."""
        last = self.last_entry
        if self.file.entries and (last.timestamp < self.entry(0).timestamp or last.offset < self.base_offset):
            raise CorruptIndexError(
                f"Corrupt time index found, time index file ({self.file.handle.path}) has non-zero size but its last "
                f"entry is timestamp {last.timestamp} at offset {last.offset}"
            )

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """Append if the timestamp is greater than the last one; any other adds no information."""
        file, last = self.file, self.last_entry
        if not skip_full_check and self.is_full:
            raise ValueError(f"Attempt to append to a full time index (size = {file.entries}).")
        if file.entries and (offset < last.offset or timestamp < last.timestamp):
            raise CorruptIndexError(
                f"Attempt to append ({timestamp}, {offset}) after {tuple(last)} to {file.handle.path}"
            )
        if timestamp > last.timestamp:
            file.append(TIME_ENTRY.pack(timestamp, offset - self.base_offset))
            self.last_entry = TimestampOffset(timestamp, offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry whose timestamp is not greater; (-1, base offset) where there is none."""
        if self.file.entries and timestamp >= self.last_entry.timestamp:
            return self.last_entry
        found = self.file.first_above(_INT64, 0, timestamp).before
        return self._parse(found) if found else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def entry(self, slot: int) -> TimestampOffset:
        """The entry in a slot."""
        return self._parse(self.file.read(slot))

    def _parse(self, entry: bytes) -> TimestampOffset:
        timestamp, relative = TIME_ENTRY.unpack(entry)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Remove entries of this offset and above."""
        self._truncate_entries(self.file.first_above(_INT32, 8, offset - self.base_offset - 1).slot)

    def _truncate_entries(self, entries: int) -> None:
        self.file.truncate(entries)
        self.last_entry = self._read_last()
