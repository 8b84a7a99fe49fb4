"""One log directory: its lock, `meta.properties`, checkpoints and clean-shutdown marker.

A directory is opened (created, locked, metadata read) before anything in it is trusted; `close` releases the lock. The
manager takes a directory that fails offline, and then calls nothing here but `close`.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import (
    MetaProperties,
    decode_meta_properties,
    decode_offsets,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_offsets,
)
from kpybroker.storage.disk.errors import CorruptCheckpointError, LogDirError, LogDirLockedError, is_disk_full
from kpybroker.storage.disk.files import (
    FileLock,
    Files,
    make_dirs,
    read_file,
    replace_file,
    unlink_if_exists,
    write_file,
)

logger = logging.getLogger("kafka.log.LogManager")


class Captured(NamedTuple):
    """Offsets of partitions at one time. As two tuples, whose hash takes a fraction of that of as many pairs."""

    partitions: tuple[TopicPartition, ...]
    offsets: tuple[int, ...]


class LogDirectory:
    """A locked log directory."""

    def __init__(self, files: Files, path: str) -> None:
        """Create and lock it. Raises OSError, LogDirLockedError, CorruptCheckpointError."""
        self._files = files
        self.path = path
        self.had_clean_shutdown = False
        self.is_loaded = False
        self._checkpoint_lock = Lock()
        self._captures = 0
        self._written: set[str] = set()
        # number of the capture, and its hash: the offsets themselves would be 16 bytes a partition for each checkpoint.
        # A cleaner's checkpoint without offsets needs no file.
        self._captured: dict[str, int] = {}  # the number of the last capture of each checkpoint
        self._on_disk = {names.CLEANER_OFFSET_CHECKPOINT: (0, hash(Captured((), ())))}
        if make_dirs(files, path):
            logger.info("Log directory %s not found, creating it.", path)
        found = files.stat(files.real_path(path))  # the directory itself may be a link; nothing below it is followed
        if found is None or not found.is_dir:
            raise NotADirectoryError(f"{path} is not a readable log directory.")
        lock = files.lock(self.file(names.LOCK))
        if lock is None:
            raise LogDirLockedError(path)
        self._lock: FileLock | None = lock
        try:
            data = read_file(files, self.file(names.META_PROPERTIES))
            self.meta = None if data is None else decode_meta_properties(data, self.file(names.META_PROPERTIES))
        except BaseException:
            self.close()
            raise

    def file(self, name: str) -> str:
        """The path of a file or directory in it."""
        return f"{self.path}/{name}"

    def files_in_use(self) -> list[str]:
        """The names of the files in it that must be there as long as it is in service."""
        metadata = [] if self.meta is None else [names.META_PROPERTIES]
        return [names.LOCK, *metadata, *list(self._written)]

    def write_meta(self, meta: MetaProperties) -> None:
        """Replace `meta.properties`. Raises OSError."""
        replace_file(self._files, self.file(names.META_PROPERTIES), encode_meta_properties(meta))
        self.meta = meta

    # --- loading

    def take_clean_shutdown_marker(self) -> None:
        """Read and remove the clean-shutdown marker: a crash from here on is an unclean stop. Raises OSError."""
        if read_file(self._files, self.file(names.CLEAN_SHUTDOWN)) is None:
            return
        self.had_clean_shutdown = True
        unlink_if_exists(self._files, self.file(names.CLEAN_SHUTDOWN))
        self._files.sync_dir(self.path)

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """An offset checkpoint; empty if missing. One that cannot be read costs a longer recovery, and no data."""
        path = self.file(name)
        try:
            offsets = decode_offsets(read_file(self._files, path) or b"", path)
        except CorruptCheckpointError as error:
            logger.warning("Cannot read %s, treating it as empty: %s", path, error)
            return {}
        if name == names.CLEANER_OFFSET_CHECKPOINT:  # others may not be durable yet: the first job writes them again
            self._on_disk[name] = 0, hash(Captured(tuple(offsets), tuple(offsets.values())))
        return offsets

    def is_on_disk(self, name: str, captured: Captured) -> bool:
        """Whether an offset checkpoint, as it was last read or written, has just these."""
        known = self._on_disk.get(name)
        # A capture that is not written yet, and of other offsets, may come after this look.
        is_latest = known is not None and known[0] == self._captured.get(name, 0)
        return known is not None and is_latest and known[1] == hash(captured)

    def partition_directories(self) -> list[str]:
        """The names of all subdirectories that may hold a log, sorted. Raises OSError, also for a symbolic link: the
        logs that it may point to would be missing.
        """
        entries = self._files.listdir(self.path)
        for entry in entries:
            if entry.is_link:
                raise OSError(errno.ELOOP, names.IS_LINK, self.file(entry.name))
        return sorted(entry.name for entry in entries if entry.is_dir and entry.name not in names.IGNORED_DIRECTORIES)

    # --- checkpoints

    def offsets_writer(self, name: str, captured: Captured) -> Callable[[], None]:
        """A job for a thread that writes an offset checkpoint. It raises LogDirError.

        A full disk keeps the old checkpoint: then there is more to recover. An older capture never replaces a newer
        one.
        """
        path = self.file(name)
        self._captures += 1
        number = self._captured[name] = self._captures

        def write() -> None:
            try:
                with self._checkpoint_lock:
                    if number > self._on_disk.get(name, (0, 0))[0]:
                        offsets = dict(zip(captured.partitions, captured.offsets, strict=True))
                        replace_file(self._files, path, encode_offsets(offsets))
                        self._written.add(name)
                        self._on_disk[name] = number, hash(captured)
            except OSError as error:
                if not is_disk_full(error):
                    raise LogDirError(self.path, error) from error
                logger.warning("No space left for %s: keeping the old one", path)

        return write

    def write_clean_shutdown_marker(self, broker_epoch: int) -> None:
        """Write the marker. A full disk leaves none, and the next start recovers. Raises OSError."""
        try:
            write_file(self._files, self.file(names.CLEAN_SHUTDOWN), encode_clean_shutdown(broker_epoch), sync=True)
        except OSError as error:
            if not is_disk_full(error):
                raise
            logger.warning("No space left for %s: the next start recovers its logs", self.file(names.CLEAN_SHUTDOWN))
            unlink_if_exists(self._files, self.file(names.CLEAN_SHUTDOWN))
        self._files.sync_dir(self.path)

    def close(self) -> None:
        """Release the lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with contextlib.suppress(OSError):
                lock.release()


def absolute(files: Files, path: str) -> str:
    """A path in the form used here: absolute and normal, links not resolved."""
    return os.path.normpath(os.path.abspath(path))
