"""The transaction index of a segment: its aborted transactions (Kafka's TransactionIndex, AbortedTxn version
0).

34 bytes an entry: version (int16), producer id, first offset, last offset (of the marker) and last stable
offset at the time of the abort (int64 each). An entry stands in the segment that holds the abort marker; the
transaction may have begun in an earlier one. The file exists only once there was an abort. Entries are kept
in memory as well: there are few.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import Files, read_file, unlink_if_exists, write_all
from kpybroker.storage.disk.slice import SharedFile

VERSION = 0
ENTRY_SIZE = 34

_ENTRY = struct.Struct(">hqqqq")
assert _ENTRY.size == ENTRY_SIZE


class AbortedTxn(NamedTuple):
    """An aborted transaction. `last_offset` is its abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions whose markers lie in one segment, in the order of the markers."""

    __slots__ = ("_entries", "_files", "_shared", "_start_offset", "dirty", "path")

    def __init__(self, files: Files, path: str, start_offset: int) -> None:
        self._files = files
        self.path = path
        self._start_offset = start_offset
        self._shared: SharedFile | None = None
        self._entries: list[AbortedTxn] | None = None
        self.dirty = False

    def _load(self) -> list[AbortedTxn]:
        """Read the file at the first use. Raises CorruptIndexError."""
        entries = self._entries
        if entries is None:
            data = read_file(self._files, self.path) or b""
            if len(data) % ENTRY_SIZE:
                raise CorruptIndexError(f"{len(data)} bytes of transaction index {self.path} are no whole entries")
            entries = []
            for position in range(0, len(data), ENTRY_SIZE):
                version, *fields = _ENTRY.unpack_from(data, position)
                if version > VERSION or version < 0:
                    raise CorruptIndexError(
                        f"Unexpected aborted transaction version {version} in transaction index {self.path}"
                    )
                entries.append(AbortedTxn(*fields))
            self._entries = entries
        return entries

    def sanity_check(self) -> None:
        """Raises CorruptIndexError."""
        last = -1
        for entry in self._load():
            if entry.last_offset < self._start_offset or entry.last_offset <= last:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {entry} in index {self.path} is less than start offset "
                    f"{self._start_offset} or out of order"
                )
            last = entry.last_offset

    def append(self, entry: AbortedTxn) -> None:
        entries = self._load()
        if entries and entries[-1].last_offset >= entry.last_offset:
            raise CorruptIndexError(
                f"The last offset of appended transactions must increase sequentially, but {entry.last_offset} is not "
                f"greater than current last offset {entries[-1].last_offset} of index {self.path}"
            )
        write_all(self.shared.file, _ENTRY.pack(VERSION, *entry), len(entries) * ENTRY_SIZE)
        entries.append(entry)
        self.dirty = True

    @property
    def is_empty(self) -> bool:
        return not self._load()

    def entries(self) -> list[AbortedTxn]:
        return list(self._load())

    def collect_aborted(self, fetch_offset: int, upper_bound_offset: int, into: list[AbortedTxn]) -> bool:
        """Add what overlaps the range to `into`; True where no later segment can hold more."""
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
        """Remove everything, readable or not."""
        self._entries = []
        if self._files.stat(self.path) is not None:
            self._cut(0)

    def _cut(self, count: int) -> None:
        self.shared.file.truncate(count * ENTRY_SIZE)
        del self._load()[count:]
        self.dirty = True

    @property
    def shared(self) -> SharedFile:
        shared = self._shared
        if shared is None:
            shared = self._shared = SharedFile(self._files.open(self.path, create=True))
        return shared

    def sync(self) -> None:
        if self.dirty:
            self.shared.file.sync()
            self.dirty = False

    def rename_to(self, path: str) -> None:
        if self._files.stat(self.path) is not None:
            self._files.rename(self.path, path)
        self.path = path

    def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.release()

    def delete(self) -> bool:
        self.close()
        return unlink_if_exists(self._files, self.path)
