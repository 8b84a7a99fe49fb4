"""The only access to files: everything storage does to a disk is one of these calls.

Rules. The calls are few and primitive, so that a wrapper can count them, fail the Nth one, or keep what was written in
memory and lose what was not synced (the crash matrix of the tests). They raise `OSError` and nothing else; the caller
decides what an error means. No call retries, caches or buffers. `File` has no position: reads and writes name theirs.
What is composed of primitives (whole-file read, atomic replace) is a function over the Protocol, so that a fake has it
too. No symbolic link is followed: a program that can make one below a log directory must not choose which file of the
machine is read, cut or overwritten. Only `real_path` resolves them, for the log directory itself.

Not here: the file systems that do it (`os_files`, `portable_files`; `local_files` chooses), reference counting and
sizes (`slice`), names (`names`), formats (all others).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class FileStat(NamedTuple):
    """What is known of a path without opening it; of a symbolic link, not of what it points to.

    `identity` is another one once the name is that of another file or directory.
    """

    size: int
    mtime_ms: int
    is_dir: bool
    identity: tuple[int, int] = (0, 0)


class DirEntry(NamedTuple):
    """One name in a directory. A symbolic link is no directory, whatever it points to."""

    name: str
    is_dir: bool
    is_link: bool = False


class DiskUsage(NamedTuple):
    """Bytes of the volume that holds a directory."""

    total_bytes: int
    usable_bytes: int


class File(Protocol):
    """One open file."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> int:
        """Bytes written, which may be fewer than given (a full disk)."""

    def truncate(self, size: int) -> None:
        """Set the length; a longer file is filled with zeros."""

    def sync(self) -> None:
        """Data and length are on the device when this returns. May be called from a thread."""

    def size(self) -> int:
        """The length in bytes."""

    def fileno(self) -> int:
        """The descriptor, for sendfile. Raises OSError(EBADF) where there is none (in-memory fakes)."""

    def close(self) -> None:
        """Close the file; a second call does nothing."""


class FileLock(Protocol):
    """A lock that is held until `release`."""

    def release(self) -> None:
        """Release the lock."""


class Files(Protocol):
    """The file system."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open a file. If it is missing, `create` creates it; without `create`, FileNotFoundError is raised.

        Raises OSError(ELOOP) for a symbolic link.
        """

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces the target."""

    def unlink(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""

    def listdir(self, path: str) -> list[DirEntry]:
        """All entries of a directory, in no order."""

    def mkdir(self, path: str) -> None:
        """One level. Raises FileExistsError."""

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""

    def stat(self, path: str) -> FileStat | None:
        """None where nothing has that name."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the time of the last change, in milliseconds since the epoch."""

    def sync_dir(self, path: str) -> None:
        """The directory's entries are on the device when this returns. May be called from a thread."""

    def sync_all(self, path: str) -> bool:
        """Everything in the file system that holds a directory is on the device when this returns.

        False, and nothing is done, where that cannot be had at once: then each file and directory has to be synced.
        """

    def lock(self, path: str) -> FileLock | None:
        """An exclusive lock that a JVM's FileChannel.tryLock sees; None where another process holds it."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Total and usable bytes of the volume that holds `path`."""

    def real_path(self, path: str) -> str:
        """Absolute, without symbolic links."""


def write_all(file: File, data: Buffer, position: int) -> None:
    """Write every byte. A write that makes no progress raises ENOSPC."""
    written = file.pwrite(data, position)
    if written == len(data):
        return
    view = memoryview(data)
    while written < len(view):
        count = file.pwrite(view[written:], position + written)
        if count <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += count


def read_exactly(file: File, size: int, position: int) -> bytes:
    """`size` bytes, or as many as there are before the end of the file."""
    data = file.pread(size, position)
    if len(data) == size or not data:
        return data
    parts = [data]
    got = len(data)
    while got < size:
        data = file.pread(size - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def read_file(files: Files, path: str) -> bytes | None:
    """A small file's content; None where there is none."""
    try:
        file = files.open(path, writable=False)
    except FileNotFoundError:
        return None
    try:
        return read_exactly(file, file.size(), 0)
    finally:
        file.close()


def write_file(files: Files, path: str, data: bytes, *, sync: bool) -> None:
    """Create or overwrite a file, not atomically: for names that are written once or carry a checksum."""
    file = files.open(path, create=True)
    try:
        file.truncate(0)
        write_all(file, data, 0)
        if sync:
            file.sync()
    finally:
        file.close()


def replace_file(files: Files, path: str, data: bytes) -> None:
    """Replace a file atomically and durably: temporary file, sync, rename, sync of the directory.

    The old content survives a crash at any point (Kafka's CheckpointFile with Utils.atomicMoveWithFallback).
    """
    temporary = path + ".tmp"
    write_file(files, temporary, data, sync=True)
    files.rename(temporary, path)
    files.sync_dir(os.path.dirname(path))


def replace_files(files: Files, directory: str, contents: Mapping[str, bytes]) -> None:
    """As `replace_file` for many files, by path, below a directory where `sync_all` works: two syncs for all of them.

    After an error each file is as before, or replaced.
    """
    if not contents:
        return
    for path, data in contents.items():
        write_file(files, path + ".tmp", data, sync=False)
    files.sync_all(directory)
    for path in contents:
        files.rename(path + ".tmp", path)
    files.sync_all(directory)


def unlink_if_exists(files: Files, path: str) -> bool:
    """Remove a file; False if there was none."""
    try:
        files.unlink(path)
    except FileNotFoundError:
        return False
    return True


def make_dirs(files: Files, path: str) -> bool:
    """Create a directory and its parents, each durable in its parent; False if it existed."""
    if files.stat(path) is not None:
        return False
    parent = os.path.dirname(path)
    if parent and parent != path:
        make_dirs(files, parent)
    with contextlib.suppress(FileExistsError):
        files.mkdir(path)
    if parent:
        files.sync_dir(parent)
    return True


def remove_tree(files: Files, path: str, names: Sequence[DirEntry] | None = None) -> None:
    """Remove a directory and all it holds. Entries that vanish during the call are ignored."""
    for entry in files.listdir(path) if names is None else names:
        child = os.path.join(path, entry.name)
        if entry.is_dir:
            remove_tree(files, child)
        else:
            unlink_if_exists(files, child)
    files.rmdir(path)
