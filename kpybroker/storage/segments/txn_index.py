"""The transaction index of a segment: its aborted transactions (Kafka's TransactionIndex, AbortedTxn version 0).

34 bytes an entry: version (int16), producer id, first offset, last offset (of the marker) and last stable offset at the
time of the abort (int64 each). An entry is in the segment that holds the abort marker; the transaction may have begun
in an earlier one. The file exists only once there was an abort. Entries are kept in memory as well: there are few.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import Files, read_file, write_all
from kpybroker.storage.disk.slice import LazyFile

VERSION = 0
ENTRY = struct.Struct(">hqqqq")


class AbortedTxn(NamedTuple):
    """An aborted transaction. `last_offset` is its abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions whose markers are in one segment, in the order of the markers."""

    __slots__ = ("_entries", "_files", "_start_offset", "handle")

    def __init__(self, files: Files, path: str, start_offset: int) -> None:
        self._files = files
        self.handle = LazyFile(files, path, create=True)
        self._start_offset = start_offset
        self._entries: list[AbortedTxn] | None = None

    def _load(self) -> list[AbortedTxn]:
        """Read the file at the first use. Raises CorruptIndexError."""
        entries = self._entries
        if entries is None:
            data = read_file(self._files, self.handle.path) or b""
            if len(data) % ENTRY.size:
                raise CorruptIndexError(
                    f"{len(data)} bytes of transaction index {self.handle.path} are no whole entries"
                )
            entries = []
            for position in range(0, len(data), ENTRY.size):
                version, *fields = ENTRY.unpack_from(data, position)
                if version > VERSION or version < 0:
                    raise CorruptIndexError(
                        f"Unexpected aborted transaction version {version} in transaction index {self.handle.path}"
                    )
                entries.append(AbortedTxn(*fields))
            self._entries = entries
        return entries

    def sanity_check(self) -> None:
        """Raise CorruptIndexError if an entry is out of order or before the segment."""
        last = -1
        for entry in self._load():
            if entry.last_offset < self._start_offset or entry.last_offset <= last:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {entry} in index {self.handle.path} is less than start offset "
                    f"{self._start_offset} or out of order"
                )
            last = entry.last_offset

    def append(self, entry: AbortedTxn) -> None:
        """Add an entry. Raises CorruptIndexError where markers would not rise, OSError."""
        entries = self._load()
        if entries and entries[-1].last_offset >= entry.last_offset:
            raise CorruptIndexError(
                f"The last offset of appended transactions must increase sequentially, but {entry.last_offset} is not "
                f"greater than current last offset {entries[-1].last_offset} of index {self.handle.path}"
            )
        write_all(self.handle.shared.file, ENTRY.pack(VERSION, *entry), len(entries) * ENTRY.size)
        entries.append(entry)
        self.handle.dirty = True

    @property
    def is_empty(self) -> bool:
        """Whether no transaction was aborted in the segment. Raises CorruptIndexError, OSError."""
        return not self._load()

    def entries(self) -> list[AbortedTxn]:
        """All entries. Raises CorruptIndexError, OSError."""
        return list(self._load())

    def collect_aborted(self, fetch_offset: int, upper_bound_offset: int, into: list[AbortedTxn]) -> bool:
        """Add the entries that overlap the range to `into`; True where no later segment can hold more."""
        for entry in self._load():
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound_offset:
                into.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Remove transactions whose marker has this offset or a greater one."""
        entries = self._load()
        for slot, entry in enumerate(entries):
            if entry.last_offset >= offset:
                self._cut(slot)
                return

    def reset(self) -> None:
        """Remove all entries, readable or not."""
        self._entries = []
        if self._files.stat(self.handle.path) is not None:
            self._cut(0)

    def _cut(self, count: int) -> None:
        self.handle.shared.file.truncate(count * ENTRY.size)
        del self._load()[count:]
        self.handle.dirty = True
