"""The file system of POSIX: each call is one of the system's, on descriptors with `pread` and `pwrite`."""

from __future__ import annotations

import errno
import os
import stat

from kpybroker.storage.disk.files import Buffer, DirEntry, DiskUsage, FileStat
from kpybroker.storage.disk.names import IS_LINK
from kpybroker.system import files as system_files
from kpybroker.system.files import NO_FOLLOW, OPEN_FLAGS, pread, pwrite, sync_data
from kpybroker.system.private_files import PRIVATE_DIRECTORY, PRIVATE_FILE


def open_descriptor(path: str, *, create: bool = False, writable: bool = True) -> int:
    """A descriptor of a file, close-on-exec. One that is created is private: it may hold keys, groups or records.

    Raises OSError(ELOOP) for a link.
    """
    flags = (os.O_RDWR if writable else os.O_RDONLY) | OPEN_FLAGS | NO_FOLLOW
    if create:
        flags |= os.O_CREAT
    try:
        return os.open(path, flags, PRIVATE_FILE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, IS_LINK, path) from None
        raise


class OsFile:
    """A file descriptor."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def pread(self, size: int, position: int) -> bytes:
        """One `pread`."""
        return pread(self._fd, size, position)

    def pwrite(self, data: Buffer, position: int) -> int:
        """One `pwrite`."""
        return pwrite(self._fd, data, position)

    def truncate(self, size: int) -> None:
        """`ftruncate`."""
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """`fdatasync`, or what does the same where there is none."""
        sync_data(self._fd)

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


class OsFileLock:
    """A lock on an open file that java.nio.channels.FileLock sees, and the reverse."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Close the descriptor, which drops the lock; a second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class OsFiles:
    """The file system of POSIX, where an open file may be renamed and removed.

    POSIX locks belong to the process, so a second lock of the same path in one process would succeed, and closing its
    descriptor would drop the first one too: `lock` therefore remembers what this object has locked.
    """

    __slots__ = ("_locked",)

    def __init__(self) -> None:
        self._locked: dict[tuple[int, int], OsFileLock] = {}

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        """As `open_descriptor`."""
        return OsFile(open_descriptor(path, create=create, writable=writable))

    def rename(self, source: str, target: str) -> None:
        """`rename(2)`, which replaces the target."""
        system_files.replace(source, target)

    def unlink(self, path: str) -> None:
        """`unlink(2)`."""
        os.unlink(path)

    def listdir(self, path: str) -> list[DirEntry]:
        """The entries by `scandir`."""
        with os.scandir(path) as entries:
            return [DirEntry(entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries]

    def mkdir(self, path: str) -> None:
        """`mkdir(2)`, private as files are."""
        os.mkdir(path, PRIVATE_DIRECTORY)

    def rmdir(self, path: str) -> None:
        """`rmdir(2)`."""
        os.rmdir(path)

    def stat(self, path: str) -> FileStat | None:
        """`lstat(2)`; None where nothing has that name."""
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        is_dir, mtime_ms = stat.S_ISDIR(found.st_mode), found.st_mtime_ns // 1_000_000
        return FileStat(found.st_size, mtime_ms, is_dir, (found.st_dev, found.st_ino))

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set access and modification time, to the millisecond."""
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def sync_dir(self, path: str) -> None:
        """`fsync` of the directory, where directories have it."""
        system_files.sync_directory(path)

    def sync_all(self, path: str) -> bool:
        """`syncfs`, if there is a lock in that file system: its descriptor reports errors since it was opened."""
        device = os.stat(path).st_dev
        for (held_on, _), lock in self._locked.items():
            if held_on == device and lock._fd >= 0:
                return system_files.sync_file_system(lock._fd)
        return False

    def lock(self, path: str) -> OsFileLock | None:
        """A lock of the whole file, which is created if missing; None where it is locked already."""
        known = os.stat(path) if os.path.exists(path) else None
        if known is not None:
            held = self._locked.get((known.st_dev, known.st_ino))
            if held is not None and held._fd >= 0:
                return None
        fd = open_descriptor(path, create=True)
        try:
            is_locked = system_files.try_lock(fd)
        except OSError:
            os.close(fd)
            raise
        if not is_locked:
            os.close(fd)
            return None
        found = os.fstat(fd)
        lock = OsFileLock(fd)
        self._locked[found.st_dev, found.st_ino] = lock
        return lock

    def disk_usage(self, path: str) -> DiskUsage:
        """Usable are the bytes that a process without privileges can fill."""
        return DiskUsage(*system_files.disk_usage(path))

    def real_path(self, path: str) -> str:
        """The path with all symbolic links resolved."""
        return os.path.realpath(path).replace(os.sep, "/")
