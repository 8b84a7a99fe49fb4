"""Deletion in two steps: files of a log and directories of logs are renamed now, removed after `file.delete.delay.ms`.

Removing is a job for a thread and raises LogDirError. A full disk loses nothing but space: the next start removes what
is left.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable

from kpybroker.storage.disk.errors import LogDirError, failing_takes_offline, is_disk_full
from kpybroker.storage.disk.files import Files, remove_tree, unlink_if_exists

logger = logging.getLogger("kafka.log.LogManager")

REMOVALS_MAX = 10
"""How often what is added to a directory during its removal is removed too."""

Job = Callable[[], None]


class PendingDeletions:
    """Paths and when to remove them."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, str]] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be removed."""
        return not self._entries

    def add(self, at_ms: int, paths: Iterable[str]) -> None:
        """Remove these paths from `at_ms` on."""
        self._entries += [(at_ms, path) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """The paths that are due, which the caller now has to remove."""
        if not self._entries:
            return []
        due = [path for at_ms, path in self._entries if at_ms <= now_ms]
        if due:
            self._entries = [entry for entry in self._entries if entry[0] > now_ms]
        return due

    def forget(self, directory: str) -> None:
        """Do not remove what is directly below a directory."""
        self._entries = [entry for entry in self._entries if parent(entry[1]) != directory]


def parent(path: str) -> str:
    """The directory of a path."""
    return path.rpartition("/")[0]


def unlink_job(files: Files, log_dir: str, paths: Iterable[str]) -> Job:
    """A job that removes files of a log in this log directory."""

    def unlink() -> None:
        for path in paths:
            unlink_if_exists(files, path)

    return _guarded(log_dir, unlink)


def remove_log_job(files: Files, path: str) -> Job:
    """A job that removes a log's directory with its files."""

    def remove() -> None:
        if files.stat(path) is not None:
            _remove_directory(files, path)
            logger.info("Deleted log directory %s.", path)

    return _guarded(parent(path), remove)


def _remove_directory(files: Files, path: str) -> None:
    """Remove it with all it holds. A flush that began before the deletion may still write leader epochs into it."""
    for left in reversed(range(REMOVALS_MAX)):
        try:
            return remove_tree(files, path)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not left:
                raise


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
    """A job that makes the renames in these directories durable."""

    def run() -> None:
        for path in log_dirs:
            with failing_takes_offline(path):
                files.sync_dir(path)

    return run
