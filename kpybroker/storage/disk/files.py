"""The only access to the operating system's files: everything storage does to a disk is one of these calls.

Rules. The calls are few and primitive, so that a wrapper can count them, fail the Nth one, or keep what was written in
memory and lose what was not synced (the crash matrix of the tests). They raise `OSError` and nothing else; the caller
decides what an error means. No call retries, caches or buffers. `File` has no position: reads and writes name theirs.
What is composed of primitives (whole-file read, atomic replace) is a function over the Protocol, so that a fake has it
too.

Not here: reference counting and sizes (`slice`), names (`names`), formats (all others).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class FileStat(NamedTuple):
    """What is known of a path without opening it."""

    size: int
    mtime_ms: int
    is_dir: bool


class DirEntry(NamedTuple):
    """One name in a directory."""

    name: str
    is_dir: bool


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
        """Open a file. If it is missing, `create` creates it; without `create`, FileNotFoundError is raised."""

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

    def lock(self, path: str) -> FileLock | None:
        """An exclusive lock that a JVM's FileChannel.tryLock sees; None where another process holds it."""

    def disk_usage(self, path: str) -> DiskUsage:
        """Total and usable bytes of the volume that holds `path`."""

    def real_path(self, path: str) -> str:
        """Absolute, without symbolic links."""


class OsFile:
    """A file descriptor."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def pread(self, size: int, position: int) -> bytes:
        """One `pread`."""
        return os.pread(self._fd, size, position)

    def pwrite(self, data: Buffer, position: int) -> int:
        """One `pwrite`."""
        return os.pwrite(self._fd, data, position)

    def truncate(self, size: int) -> None:
        """`ftruncate`."""
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """`fdatasync`, or `fsync` where there is none."""
        _sync_fd(self._fd)

    def size(self) -> int:
        """The length by `fstat`."""
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        """The descriptor; -1 once the file is closed."""
        return self._fd

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


# fdatasync also writes the length when it changed, which is all we need of the metadata. macOS has none.
_sync_fd = getattr(os, "fdatasync", os.fsync)


class OsFileLock:
    """`fcntl.lockf` on an open file: what java.nio.channels.FileLock uses, so each sees the other."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Close the descriptor, which drops the lock; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsFiles:
    """The real file system.

    POSIX locks belong to the process, so a second lock of the same path in one process would succeed, and closing its
    descriptor would drop the first one too: `lock` therefore remembers what this object has locked.
    """

    __slots__ = ("_locked",)

    def __init__(self) -> None:
        self._locked: dict[tuple[int, int], OsFileLock] = {}

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        """Open a file as mode 0644, close-on-exec."""
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        if create:
            flags |= os.O_CREAT
        return OsFile(os.open(path, flags, 0o644))

    def rename(self, source: str, target: str) -> None:
        """`rename(2)`, which replaces the target."""
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """`unlink(2)`."""
        os.unlink(path)

    def listdir(self, path: str) -> list[DirEntry]:
        """The entries by `scandir`."""
        with os.scandir(path) as entries:
            return [DirEntry(entry.name, entry.is_dir()) for entry in entries]

    def mkdir(self, path: str) -> None:
        """`mkdir(2)` with mode 0755."""
        os.mkdir(path, 0o755)

    def rmdir(self, path: str) -> None:
        """`rmdir(2)`."""
        os.rmdir(path)

    def stat(self, path: str) -> FileStat | None:
        """`stat(2)`; None where nothing has that name."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileStat(found.st_size, found.st_mtime_ns // 1_000_000, stat.S_ISDIR(found.st_mode))

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set access and modification time, to the millisecond."""
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def sync_dir(self, path: str) -> None:
        """`fsync` of the directory."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> OsFileLock | None:
        """`lockf` on the whole file, which is created if missing; None where it is locked already."""
        known = os.stat(path) if os.path.exists(path) else None
        if known is not None:
            held = self._locked.get((known.st_dev, known.st_ino))
            if held is not None and held._fd >= 0:
                return None
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        found = os.fstat(fd)
        lock = OsFileLock(fd)
        self._locked[found.st_dev, found.st_ino] = lock
        return lock

    def disk_usage(self, path: str) -> DiskUsage:
        """Bytes by `statvfs`; usable are those that a process without privileges can fill."""
        found = os.statvfs(path)
        return DiskUsage(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def real_path(self, path: str) -> str:
        """The path with all symbolic links resolved."""
        return os.path.realpath(path)


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
