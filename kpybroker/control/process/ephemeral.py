"""The directory of brokers that keep nothing: made at the start, gone at the end, however the end comes.

It is removed by the orderly stop, by the signal that ends the process at once, and after a kill by the next start. That
start must not take the directory of a broker that runs or is about to: each one holds a lock on a marker file in it
until its process is gone, and the marker gets its name only once it is locked. Only directories with that marker are
ever removed, so that no `--data-dir` is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from kpybroker.system.files import HAS_FLOCK, belongs_to_this_user, try_flock

logger = logging.getLogger("kafka.server.KafkaServer")

PREFIX: Final = "kpybroker-"
MARKER: Final = ".ephemeral"
LOG_DIR_LOCK: Final = ".lock"
REMOVALS_MAX: Final = 3
"""A broker that is being ended may still create files."""


@contextmanager
def ephemeral_directory(name: str | None = None) -> Iterator[str]:
    """A directory for the length of the block, which must not exist if it has this name; by default it is a new one.

    First removes those of brokers that were killed. Raises OSError.
    """
    remove_stale(_parent_of(name))
    if name is None:
        import tempfile

        directory = tempfile.mkdtemp(prefix=PREFIX)
    else:
        os.mkdir(name, 0o700)
        directory = name
    marker = None
    try:
        marker = _mark(directory)
        yield directory
    finally:
        remove(directory)
        if marker is not None:
            os.close(marker)


def _parent_of(name: str | None) -> str:
    """Where directories are made; `tempfile` takes 10 ms to import, which a start with a name does without."""
    if name is not None:
        return os.path.dirname(name) or os.curdir
    import tempfile

    return tempfile.gettempdir()


def remove(directory: str) -> None:
    """Remove it with everything in it. The marker goes last, so that what is left is removed by a later start."""
    for _ in range(REMOVALS_MAX):
        for entry in _entries(directory):
            if entry.name != MARKER:
                _remove_entry(entry)
        with suppress(OSError):
            os.unlink(os.path.join(directory, MARKER))
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            continue  # a file has appeared since
        return


def remove_stale(parent: str) -> None:
    """Remove the directories in `parent` that this user's ephemeral brokers left when they were killed."""
    for entry in _entries(parent):
        if not entry.name.startswith(PREFIX) or not _is_own_directory(entry):
            continue
        marker = _lock(os.path.join(entry.path, MARKER))
        if marker is None:
            continue
        try:
            if not _is_log_dir_locked(entry.path):
                remove(entry.path)
                logger.info("Removed %s, which an ephemeral broker left when it was killed", entry.path)
        finally:
            os.close(marker)


def _mark(directory: str) -> int | None:
    """Put the marker into a new directory, locked from the moment it has its name; the descriptor with the lock.

    None where the platform has no such locks: what a killed broker leaves stays there.
    """
    if not HAS_FLOCK:
        return None
    path = os.path.join(directory, MARKER)
    descriptor = os.open(f"{path}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try_flock(descriptor)  # no one else knows it
    os.rename(f"{path}.new", path)
    return descriptor


def _lock(path: str) -> int | None:
    """A descriptor with the lock on a marker; None where that is held, or there is no marker."""
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with suppress(OSError):
        if try_flock(descriptor) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    os.close(descriptor)
    return None


def _is_log_dir_locked(directory: str) -> bool:
    """Whether a broker has its log directory there, at most two levels down as those of clusters are."""
    from kpybroker.storage.disk.local_files import local_files

    below = [entry.path for entry in _entries(directory) if entry.is_dir(follow_symlinks=False)]
    for place in (directory, *below, *(entry.path for parent in below for entry in _entries(parent))):
        path = os.path.join(place, LOG_DIR_LOCK)
        if not os.path.exists(path):
            continue
        try:
            lock = local_files().lock(path)
        except OSError:
            return True
        if lock is None:
            return True
        lock.release()
    return False


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _is_own_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False) and belongs_to_this_user(entry.stat(follow_symlinks=False))
    except OSError:
        return False


def _remove_entry(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        import shutil

        shutil.rmtree(entry.path, ignore_errors=True)
        return
    with suppress(OSError):
        os.unlink(entry.path)
