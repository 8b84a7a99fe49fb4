"""Making a log durable in three steps, so that no fsync runs on the loop.

`log.prepare_flush()` on the loop captures what is dirty: open files (acquired, so that nothing closes them), names of
files and directories that are new, and the leader epochs. `job.run()` may run in a thread; it touches nothing but the
disk and keeps the first error. `job.complete()` on the loop releases the files and moves the recovery point, or raises.
A failed sync is never retried: the kernel may have dropped the pages that it could not write and would report success.

What is appended while a job runs is not covered by it and stays dirty for the next one. Jobs of one log may overlap:
the recovery point only grows, and of two captures of the leader epochs the older one never replaces the newer. Closing
a log waits for the jobs that it prepared, and fails if one of them did.
"""

from __future__ import annotations

import contextlib
import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING

from kpybroker.storage.disk.errors import LogDirError, is_disk_full
from kpybroker.storage.disk.slice import SharedFile
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.storage.log.log_state import LogState


def prepare(log: LogState) -> FlushJob:
    """Capture everything of the log that is not yet durable, up to its end. Raises LogDirError."""
    unflushed, snapshots = log.unflushed, log.snapshots
    held: list[SharedFile] = []
    dirty_directory = unflushed.has_new_directory or unflushed.has_renamed
    lacks_space = False
    for segment in dict.fromkeys([*unflushed.rolled, *log.segments_map.from_offset(log.recovery_point)]):
        try:
            if not segment.write_out_indexes():
                lacks_space = True
            held.extend(segment.take_dirty_files())
        except OSError as error:
            for shared in held:
                shared.release()
            raise LogDirError(log.log_dir, error) from error
        dirty_directory = dirty_directory or segment.is_new
        segment.is_new = False
    directories = [log.directory] if dirty_directory else []
    if unflushed.has_new_name:
        directories.append(log.log_dir)
    paths = [*(f"{log.directory}/{name}" for name in unflushed.names), *snapshots.unsynced]
    unflushed.names, snapshots.unsynced = (), ()
    unflushed.has_new_directory = unflushed.has_new_name = unflushed.has_renamed = False
    unflushed.rolled = ()
    epochs = log.epoch_checkpoint.capture(log.epochs, log.log_end_offset)
    job = FlushJob(log, log.log_end_offset, held, paths, directories, epochs)
    job.lacks_space = lacks_space
    unflushed.jobs += (job,)
    return job


class FlushJob:
    """One flush of one log up to `offset` (exclusive)."""

    __slots__ = (
        "_epochs",
        "_error",
        "_files",
        "_held",
        "_log",
        "_running",
        "_took_us",
        "_truncations",
        "_was_run",
        "directories",
        "lacks_space",
        "offset",
        "paths",
    )

    def __init__(
        self,
        log: LogState,
        offset: int,
        held: list[SharedFile],
        paths: list[str],
        directories: list[str],
        epochs: tuple[int, bytes] | None,
    ) -> None:
        self._log = log
        self.offset = offset
        self._held = held
        self.paths = paths
        self.directories = directories
        self._epochs = epochs
        self._files = log.files
        self._error: OSError | None = None
        self._running = threading.Lock()
        self._was_run = False
        self._took_us = 0
        self.lacks_space = False
        self._truncations = log.truncations

    def run(self) -> None:
        """Sync everything, once. Safe in a thread; an error is raised by `complete`."""
        with self._running:
            if not self._was_run:
                self._was_run = True
                began_ns = perf_counter_ns()
                self._sync()
                self._took_us = (perf_counter_ns() - began_ns) // 1000

    def _sync(self) -> None:
        try:
            for shared in self._held:
                shared.file.sync()
            for path in self.paths:
                self._sync_path(path)
            for directory in self.directories:
                with contextlib.suppress(FileNotFoundError):
                    self._files.sync_dir(directory)
            if self._epochs is not None:
                # The directory may have been renamed for deletion; then the file is not needed.
                with contextlib.suppress(FileNotFoundError):
                    self._write_epochs(*self._epochs)
        except OSError as error:
            self._error = error

    def _write_epochs(self, version: int, data: bytes) -> None:
        """A full disk leaves the epochs, and the recovery point, to a later flush: the batches have the epochs too."""
        try:
            self._log.epoch_checkpoint.write(self._files, version, data)
        except OSError as error:
            if not is_disk_full(error):
                raise
            self.lacks_space = True

    def _sync_path(self, path: str) -> None:
        try:
            file = self._files.open(path)
        except FileNotFoundError:
            return
        try:
            file.sync()
        finally:
            file.close()

    def complete(self) -> None:
        """Release the files and move the recovery point to `offset`, unless the log was cut. On the loop, after `run`.

        Raises LogDirError; KAFKA_STORAGE_ERROR where there was no space for leader epochs or index entries.
        """
        held, self._held = self._held, []
        for shared in held:
            shared.release()
        unflushed = self._log.unflushed
        unflushed.jobs = tuple(job for job in unflushed.jobs if job is not self)
        if self._log.flush_times is not None:
            self._log.flush_times.record(self._took_us)
        self.check()
        if self.lacks_space:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"No space left in {self._log.directory}: the recovery point stays where it was",
            )
        if self._truncations == self._log.truncations:
            self._log.mark_flushed(self.offset)

    def check(self) -> None:
        """Raise LogDirError where `run` failed."""
        if self._error is not None:
            raise LogDirError(self._log.log_dir, self._error)
