"""Notices files and directories in use that were taken away: removed, moved, or replaced by others of the same name.

An open file keeps its bytes without a name. Without this look everything goes on, and what is acknowledged is gone when
the broker stops.

What is looked at, on the loop and in steps: in each pass the files at the top of a log directory, the partitions that
have grown since, and `IDLE_PER_PASS` of the others in turn. A log directory that has changed is listed, and so is a
partition's directory: it must have every segment's `.log`. A change within a few milliseconds of the last look, which
is one tick of the clock of a file system, is seen in the next pass, which lists once more. The file that is appended to
must be as long as what was appended: a copy in its place is too short once the log goes on; one that was cut, until
then.

A partition is settled where two looks found the same: one stat of its directory and the length of its open file say
that it still is. That is nearly all that 10 000 partitions at rest cost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, NoReturn, Protocol

from kpybroker.core.topic_partition import shared
from kpybroker.storage.directories.log_dir import LogDirectory
from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import LogDirError, failing_takes_offline
from kpybroker.storage.disk.files import Files, FileStat
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.seen_log import NEVER, SeenLog

logger = logging.getLogger("kafka.log.LogManager")

IDLE_PER_PASS = 500
NAMED_MAX = 100
"""Lines of one failure that name a partition."""
_end_of = attrgetter("log_end_offset")


class Watched(Protocol):
    """The logs of a broker."""

    def in_use(self) -> tuple[Sequence[LogDirectory], Sequence[Log]]:
        """The directories in service, and all logs in them."""


class Seen(NamedTuple):
    """What the last look at a log directory found. `settled`: it had not changed since the look before."""

    found: FileStat
    settled: bool


class Presence:
    """The looks at one broker's directories."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._directories: dict[LogDirectory, Seen] = {}
        self._next_idle = 0
        self._settled_ends: list[int] = []
        """Where all logs ended when each of them was settled; empty where that is not known."""

    def look(self, watched: Watched) -> Iterator[None]:
        """One pass; yields after each directory, so that others may run. Raises LogDirError.

        The error's directory is to be taken offline, with `name_losses`.
        """
        directories, logs = watched.in_use()
        changed = {directory.path for directory in directories if self._look_at_top(directory)}
        yield
        for path in changed:
            self._look_at_names(path, [log for log in logs if log.log_dir == path])
            yield
        due = self._unsettled(logs, is_known=not changed)
        yield
        idle = logs[self._next_idle : self._next_idle + IDLE_PER_PASS]
        self._next_idle = self._next_idle + IDLE_PER_PASS if self._next_idle + IDLE_PER_PASS < len(logs) else 0
        due += [log for log in idle if log.seen.settled_at == log.log_end_offset]
        for log in due:
            if not (log.is_closed or self._is_as_settled(log)):
                self._settled_ends = []
                self._check(log)
            yield

    def _unsettled(self, logs: Sequence[Log], *, is_known: bool) -> list[Log]:
        """The logs that were not settled by the last look, or have grown since: of 10 000 at rest none.

        `is_known`: these are the logs of the last pass.
        """
        ends = list(map(_end_of, logs))
        if is_known and ends == self._settled_ends:
            return []
        due = [log for log, end in zip(logs, ends, strict=True) if log.seen.settled_at != end]
        self._settled_ends = [] if due else ends
        return due

    def check_all(self, directory: LogDirectory, logs: Iterable[Log]) -> None:
        """Look at everything in a log directory, before it is closed. Raises LogDirError."""
        self._look_at_top(directory)
        for log in logs:
            if not log.is_closed:
                self._check(log)

    # --- a log directory

    def _look_at_top(self, directory: LogDirectory) -> bool:
        """Whether names in it may have changed since the last look."""
        path = directory.path
        with failing_takes_offline(path):
            for name in directory.files_in_use():
                if self._files.stat(directory.file(name)) is None:
                    self._fail(path, f"{directory.file(name)} was taken away")
            found = self._files.stat(self._files.real_path(path))
        if found is None:
            self._fail(path, f"{path} was taken away")
        seen = self._directories.get(directory)
        if seen is not None and seen.found.identity != found.identity:
            self._fail(path, f"{path} was replaced by another directory")
        is_same = seen is not None and seen.found.mtime_ms == found.mtime_ms
        self._directories[directory] = Seen(found, is_same)
        return not (is_same and seen is not None and seen.settled)

    def _look_at_names(self, log_dir: str, logs: Sequence[Log]) -> None:
        with failing_takes_offline(log_dir):
            present = {entry.name for entry in self._files.listdir(log_dir) if entry.is_dir}
        for log in logs:
            if not log.is_closed and log.directory.rpartition("/")[2] not in present:
                self._check(log)

    # --- a partition's directory

    def _is_as_settled(self, log: Log) -> bool:
        """Whether a settled log has not changed; False says nothing. Names that changed are those of its directory."""
        seen, active = log.seen, log.segments_map.active.records
        if seen.settled_at != log.log_end_offset:
            return False
        try:
            found = self._files.stat(log.directory)
            return (
                found is not None
                and found.mtime_ms == seen.mtime_ms
                and found.identity == (seen.device, seen.inode)
                and found.is_dir
                and active.shared.file.size() >= active.size
            )
        except OSError:
            return False

    def _check(self, log: Log) -> None:
        if (lost := self._lost(log)) is not None:
            self._fail(log.log_dir, lost)

    def _lost(self, log: Log) -> str | None:
        """What was taken away of a log; None if it is whole. Remembers what it found."""
        seen = log.seen
        with failing_takes_offline(log.log_dir):
            found = self._files.stat(log.directory)
            if found is None or not found.is_dir:
                return f"{log.directory} was taken away"
            device, inode = found.identity
            if seen.end_offset != NEVER and (seen.device, seen.inode) != (device, inode):
                return f"{log.directory} was replaced by another directory"
            is_same = seen.end_offset != NEVER and seen.mtime_ms == found.mtime_ms
            if not (is_same and seen.settled_at != NEVER):
                present = {entry.name for entry in self._files.listdir(log.directory)}
                for base in log.segments_map.base_offsets:
                    if f"{base:020d}{names.LOG_SUFFIX}" not in present:
                        return f"{names.segment_file(log.directory, base, names.LOG_SUFFIX)} was taken away"
            active = log.segments_map.active.records
            there = self._files.stat(active.path)
            if there is None or there.size < active.size:
                return f"{active.path} was cut or replaced"
        end = log.log_end_offset
        log.seen = SeenLog(shared(device), inode, found.mtime_ms, end, end if is_same else NEVER)
        return None

    # --- failing

    def _fail(self, log_dir: str, cause: str) -> NoReturn:
        raise LogDirError(log_dir, f"{cause} while it was in use")

    def name_losses(self, log_dir: str, logs: Iterable[Log]) -> None:
        """Log each partition of a directory that goes offline, whatever the cause, and has lost something."""
        count = 0
        for log in logs:
            seen_to = log.seen.end_offset
            try:
                if log.log_dir != log_dir or log.is_closed or (lost := self._lost(log)) is None:
                    continue
            except LogDirError:
                return  # nothing can be known of a disk that fails
            count += 1
            if count <= NAMED_MAX:
                logger.error(
                    "%s while it was in use: of the records of %s below offset %d some are lost. Those from offset %d "
                    "on were acknowledged since it was last seen whole",
                    *(lost, log.partition, log.log_end_offset),
                    log.log_start_offset if seen_to == NEVER else seen_to,
                )
        if count > NAMED_MAX:
            logger.error("The same is true of %d more partitions in %s", count - NAMED_MAX, log_dir)
