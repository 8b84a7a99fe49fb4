"""What is renamed now and removed later, after `file.delete.delay.ms`: files of a log, directories of logs.

Removing is a job for a thread, and raises LogDirError. On a full disk nothing is lost but space: the next start removes
what is left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kpybroker.storage.disk.errors import LogDirError, is_disk_full
from kpybroker.storage.disk.files import Files, remove_tree, unlink_if_exists

logger = logging.getLogger("kafka.log.LogManager")

Job = Callable[[], None]


class PendingDeletions:
    """Paths and when to remove them."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, str]] = []

    def add(self, at_ms: int, paths: Iterable[str]) -> None:
        self._entries += [(at_ms, path) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """The paths whose time has come; they are the caller's now."""
        if not self._entries:
            return []
        due = [path for at_ms, path in self._entries if at_ms <= now_ms]
        if due:
            self._entries = [entry for entry in self._entries if entry[0] > now_ms]
        return due

    def forget(self, directory: str) -> None:
        """What is directly below a directory is left where it is."""
        self._entries = [entry for entry in self._entries if parent(entry[1]) != directory]


def parent(path: str) -> str:
    return path.rpartition("/")[0]


def unlink_job(files: Files, log_dir: str, paths: Iterable[str]) -> Job:
    """Remove files of a log of this directory."""

    def unlink() -> None:
        for path in paths:
            unlink_if_exists(files, path)

    return _guarded(log_dir, unlink)


def remove_log_job(files: Files, path: str) -> Job:
    """Remove a log's directory and what is in it."""

    def remove() -> None:
        if files.stat(path) is not None:
            remove_tree(files, path)
            logger.info("Deleted log directory %s.", path)

    return _guarded(parent(path), remove)


def _guarded(log_dir: str, action: Job) -> Job:
    def run() -> None:
        try:
            action()
        except OSError as error:
            if not is_disk_full(error):
                raise LogDirError(log_dir, error) from error
            logger.warning("No space left in %s to remove files; the next start removes them", log_dir)

    return run


def sync_job(files: Files, log_dirs: Iterable[str]) -> Job:
    """Make the renames in these directories durable."""

    def run() -> None:
        for path in log_dirs:
            try:
                files.sync_dir(path)
            except OSError as error:
                raise LogDirError(path, error) from error

    return run
