"""What a crash of the machine takes from a file: the writes that were not synced, and how to undo them.

`Unsynced` belongs to one file and follows its renames. Consecutive appends are one entry, so a log that is only
appended to costs nothing; what is overwritten or cut off is kept in memory until the next sync.

A write that is made while a sync runs may or may not be on the disk when the sync returns: it counts as not synced.
"""

from __future__ import annotations

from typing import NamedTuple

from kpybroker.storage.disk.files import File, write_all


class Write(NamedTuple):
    """A write of the bytes from `position` to `end`, or a truncation to `position`.

    `old` are the bytes from `position` on that it replaced or cut off, in a file of `size_before` bytes.
    """

    size_before: int
    position: int
    end: int
    old: bytes

    @property
    def is_append(self) -> bool:
        """Whether the file only grew."""
        return not self.old and self.position == self.size_before

    def undo(self, file: File, *, kept: int = 0) -> None:
        """Restore the file, but for the first `kept` bytes that were written. Raises OSError."""
        at = self.position + kept
        if old := self.old[kept:]:
            write_all(file, old, at)
        file.truncate(max(self.size_before, at if kept else 0))


def about_to_write(file: File, position: int, end: int) -> Write:
    """The entry of a write, before it is made."""
    size = file.size()
    old = file.pread(min(end, size) - position, position) if position < size else b""
    return Write(size, position, end, old)


def about_to_truncate(file: File, size: int) -> Write:
    """The entry of a truncation to `size`, before it is made."""
    before = file.size()
    return Write(before, min(size, before), size, file.pread(before - size, size) if size < before else b"")


class Unsynced:
    """The writes of one file since its last sync, oldest first."""

    __slots__ = ("_first", "_sealed", "opens", "path", "writes")

    def __init__(self, path: str) -> None:
        self.path = path
        self.opens = 0
        self.writes: list[Write] = []
        self._first = 0  # the number of the first entry: entries are numbered from the begin
        self._sealed = 0  # entries below this number are in a sync that has begun

    def note(self, write: Write) -> None:
        """Keep an entry."""
        last = self._first + len(self.writes) - 1
        is_next = last >= self._sealed and self.writes[-1].end == write.position
        if not (is_next and write.is_append and self.writes[-1].is_append):
            self.writes.append(write)
        else:
            self.writes[-1] = self.writes[-1]._replace(end=write.end)

    def sync_begins(self) -> int:
        """What to pass to `synced` if the sync succeeds."""
        self._sealed = self._first + len(self.writes)
        return self._sealed

    def synced(self, until: int) -> None:
        """A sync that began at `until` has ended: what was written before is on the disk."""
        count = max(until - self._first, 0)
        del self.writes[:count]
        self._first += count

    def lose(self, file: File) -> None:
        """Restore the file as of its last sync. Raises OSError."""
        while self.writes:
            self.writes.pop().undo(file)
