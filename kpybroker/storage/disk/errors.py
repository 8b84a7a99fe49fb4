"""What storage raises in addition to `KafkaError`: conditions that a client cannot cause and cannot fix.

`LogDirError` is the one that the broker acts on while it runs: the directory goes offline (Kafka's
LogDirFailureChannel). The others stop the start of the broker, or are handled inside storage (corrupt
index, corrupt snapshot).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class StorageError(Exception):
    """Base of everything below."""


def is_disk_full(error: OSError) -> bool:
    """Whether more space would fix it: the one I/O error that leaves a log directory in service."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_MORE_FILES = "raise the limit of open files (`ulimit -n`, `LimitNOFILE=` of systemd) to four for each partition"
_FIXES: Mapping[int | None, str] = {
    errno.EMFILE: _MORE_FILES,
    errno.ENFILE: _MORE_FILES,
    errno.EACCES: "give the broker's user the right to write there",
    errno.EROFS: "mount the file system for writing",
}


class LogDirError(StorageError):
    """An I/O error in a log directory: the broker must take `log_dir` offline. Never retried by us."""

    def __init__(self, log_dir: str, cause: OSError | str) -> None:
        super().__init__(f"I/O error in log directory {log_dir}: {cause}")
        self.log_dir = log_dir
        self.cause = cause

    @property
    def fix(self) -> str:
        """What an administrator does before the next start."""
        number = self.cause.errno if isinstance(self.cause, OSError) else None
        return f"{_FIXES.get(number, 'repair or replace the disk')}, then start again"


@contextmanager
def failing_takes_offline(log_dir: str) -> Iterator[None]:
    """An OSError inside becomes the LogDirError of this directory."""
    try:
        yield
    except OSError as error:
        raise LogDirError(log_dir, error) from error


class LogDirLockedError(StorageError):
    """Another broker holds the `.lock` file; a Kafka broker counts too."""

    def __init__(self, log_dir: str) -> None:
        super().__init__(
            f"Failed to acquire lock on file .lock in {log_dir}. "
            "A Kafka instance in another process or thread is using this directory."
        )
        self.log_dir = log_dir


class InconsistentMetadataError(StorageError):
    """The `meta.properties` files disagree with each other (InconsistentBrokerMetadataException)."""


class InconsistentClusterIdError(StorageError):
    """The directory belongs to another cluster (InconsistentClusterIdException)."""


class InconsistentBrokerIdError(StorageError):
    """The directory belongs to another broker (InconsistentBrokerIdException)."""


class DuplicateLogError(StorageError):
    """Two log directories hold a log of the same partition."""


class UnknownLogDirectoryError(StorageError):
    """A log directory contains a directory whose name is not that of a partition."""


class CorruptCheckpointError(StorageError):
    """A checkpoint, metadata or snapshot file cannot be read as what its name says."""


class CorruptIndexError(StorageError):
    """An index contradicts itself or its segment; it is rebuilt from the segment."""
