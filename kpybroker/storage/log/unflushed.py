"""What of a log is not durable yet: the next flush (`flush`) captures it and makes it durable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from kpybroker.storage.disk.checkpoints import encode_leader_epochs
from kpybroker.storage.disk.files import Files, replace_file
from kpybroker.storage.disk.names import LEADER_EPOCH_CHECKPOINT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kpybroker.core.replication.leader_epochs import EpochEntry, LeaderEpochCache
    from kpybroker.storage.segments.segment import LogSegment


class PreparedFlush(Protocol):
    """A flush that was captured and is not complete (`flush.FlushJob`)."""

    def run(self) -> None:
        """Sync everything, once; an error is kept for `check`."""

    def check(self) -> None:
        """Raise LogDirError where `run` failed."""


class EpochCheckpoint:
    """The `leader-epoch-checkpoint` file of a log, and which epochs it holds.

    An epoch that begins at the end of the log is left out: it has no record, and loading a log removes such epochs. So
    an election alone, as each start of a broker brings for every partition, leaves nothing to write.
    """

    __slots__ = ("_captured", "_captures", "_lock", "_seen_version", "_written", "directory")

    def __init__(self, directory: str, entries: Iterable[EpochEntry]) -> None:
        """`directory` is the log's; `entries` are what the file holds."""
        self.directory = directory
        self._captured: tuple[EpochEntry, ...] | None = tuple(entries)  # the last; None where its write failed
        self._captures = 0
        self._written = 0  # the number of the capture that the file has
        self._seen_version = 0  # of epochs that are those of the last capture
        self._lock: threading.Lock | None = None  # most logs have nothing to write

    @property
    def path(self) -> str:
        """Of the file."""
        return f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}"

    def capture(self, epochs: LeaderEpochCache, end_offset: int) -> tuple[int, bytes] | None:
        """Number and bytes to write for a log that ends at an offset; None where the file needs no change."""
        known = self._captured
        if known is not None and epochs.version == self._seen_version:
            return None
        entries = _below(epochs.entries, end_offset)
        is_new = known is None or entries != _below(known, end_offset)
        if known is None or is_new:
            self._captured = known = entries
            self._captures += 1
            self._lock = self._lock or threading.Lock()
        # What begins at the end counts as soon as the log goes on.
        self._seen_version = epochs.version if len(epochs) == len(entries) == len(known) else -1
        return (self._captures, encode_leader_epochs(entries)) if is_new else None

    def write(self, files: Files, number: int, data: bytes) -> None:
        """Replace the file, unless it has a later capture already. Safe in a thread. Raises OSError."""
        assert self._lock is not None, "what is written was captured"
        with self._lock:
            if number > self._written:
                try:
                    replace_file(files, self.path, data)
                except OSError:
                    self.forget()
                    raise
                self._written = number

    def forget(self) -> None:
        """What was captured last may not be in the file: it is captured again."""
        self._captured = None


def _below(entries: Iterable[EpochEntry], end_offset: int) -> tuple[EpochEntry, ...]:
    return tuple(entry for entry in entries if entry.start_offset < end_offset)


class Unflushed:
    """What the next flush of a log has to sync in addition to the records above its recovery point."""

    __slots__ = ("has_new_directory", "has_new_name", "has_renamed", "jobs", "names", "rolled")

    def __init__(self, *, has_new_directory: bool) -> None:
        self.has_new_directory = has_new_directory  # none of the names in it is durable
        self.has_new_name = has_new_directory  # nor is its own, in the log directory
        self.has_renamed = False  # segments were removed, and a power cut may bring them back
        # Tuples, since nearly all logs have nothing here: an empty list is 56 bytes.
        self.names: tuple[str, ...] = ()  # small files that were written, in the log's directory
        self.rolled: tuple[LogSegment, ...] = ()
        self.jobs: tuple[PreparedFlush, ...] = ()  # captured and not complete

    def note_synced(self) -> None:
        """All of it is durable."""
        self.has_new_directory = self.has_new_name = self.has_renamed = False
        self.names, self.rolled = (), ()

    def forget(self, segments: Collection[LogSegment]) -> None:
        """Leave out segments that were removed from the log."""
        self.rolled = tuple(segment for segment in self.rolled if segment not in segments)
