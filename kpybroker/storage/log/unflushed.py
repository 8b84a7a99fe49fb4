"""What of a log is not durable yet: the next flush (`flush`) captures it and makes it durable."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from kpybroker.storage.disk.checkpoints import encode_leader_epochs
from kpybroker.storage.disk.files import Files, replace_file

if TYPE_CHECKING:
    from collections.abc import Collection

    from kpybroker.core.replication.leader_epochs import LeaderEpochCache
    from kpybroker.storage.segments.segment import LogSegment


class PreparedFlush(Protocol):
    """A flush that was captured and is not complete (`flush.FlushJob`)."""

    def run(self) -> None:
        """Sync everything, once; an error is kept for `check`."""

    def check(self) -> None:
        """Raise LogDirError where `run` failed."""


class EpochCheckpoint:
    """The `leader-epoch-checkpoint` file of a log, and which version of the epochs it holds."""

    __slots__ = ("_lock", "path", "version")

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.version = version
        self._lock = threading.Lock()

    def capture(self, epochs: LeaderEpochCache) -> tuple[int, bytes] | None:
        """The version and bytes to write; None where the file is up to date."""
        if epochs.version == self.version:
            return None
        return epochs.version, encode_leader_epochs(epochs.entries)

    def write(self, files: Files, version: int, data: bytes) -> None:
        """Replace the file, unless it has a later version already. Safe in a thread. Raises OSError."""
        with self._lock:
            if version > self.version:
                replace_file(files, self.path, data)
                self.version = version


class Unflushed:
    """What the next flush of a log has to sync in addition to the records above its recovery point."""

    __slots__ = ("has_new_directory", "has_renamed", "jobs", "paths", "rolled")

    def __init__(self, *, has_new_directory: bool) -> None:
        self.has_new_directory = has_new_directory
        self.has_renamed = False  # segments were removed, and a power cut may bring them back
        self.paths: list[str] = []  # small files that were written
        self.rolled: list[LogSegment] = []
        self.jobs: set[PreparedFlush] = set()  # captured and not complete

    def forget(self, segments: Collection[LogSegment]) -> None:
        """Leave out segments that were removed from the log."""
        self.rolled = [segment for segment in self.rolled if segment not in segments]
