"""Files: reading and writing at a place, bringing them to the device, locks, renames, the disk's room."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kpybroker.system import IS_PORTABLE, of_the_system

Buffer = bytes | bytearray | memoryview

HAS_POSIX_FILES: Final = sys.platform != "win32" and not IS_PORTABLE
"""Whether files have `pread`, and may be renamed and removed while they are open."""
OPEN_FLAGS: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Nothing waits for the other end of a pipe that has the name of a file."""
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Opening a symbolic link fails with it; 0 on Windows, where making one takes a privilege."""
pread: Final[Callable[[int, int, int], bytes]] = of_the_system(os, "pread")
pwrite: Final[Callable[[int, Buffer, int], int]] = of_the_system(os, "pwrite")
"""Only where `HAS_POSIX_FILES`."""


def _sync_data(fd: int) -> None:
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # as FileChannel.force: fsync leaves data in the drive's cache
    else:
        os.fsync(fd)


# fdatasync also writes the length when it changed, which is all we need of the metadata.
sync_data: Final[Callable[[int], None]] = _sync_data if IS_PORTABLE else getattr(os, "fdatasync", _sync_data)
"""Bring a file's data and length to the device."""


def sync_directory(path: str) -> None:
    """Bring a directory's entries to the device. Without POSIX files it cannot be asked for, and does nothing."""
    if not HAS_POSIX_FILES:
        return
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | OPEN_FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_ORDERED_FILE_SYSTEMS: Final = (0xEF53, 0x58465342, 0x9123683E)  # statfs(2): ext4, XFS, btrfs


def sync_file_system(fd: int) -> bool:
    """Bring all that was written to a descriptor's file system to the device (syncfs(2)), other programs' files too.

    Raises OSError, also for what could not be written since the descriptor was opened. False, and nothing is done,
    where that is not known to hold: before Linux 5.8 errors were not reported, and other file systems than these may do
    less than for the fsync of each file (overlayfs, FUSE).
    """
    if sys.platform != "linux" or IS_PORTABLE:
        return False
    if tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) < (5, 8):
        return False
    import ctypes  # trio has it too

    libc = ctypes.CDLL(None, use_errno=True)
    statfs = ctypes.create_string_buffer(256)  # a struct that begins with the type
    if libc.fstatfs(fd, statfs):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if ctypes.c_long.from_buffer(statfs).value not in _ORDERED_FILE_SYSTEMS or not hasattr(libc, "syncfs"):
        return False
    if libc.syncfs(fd):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def try_lock(fd: int) -> bool:
    """Take an exclusive lock on a whole file, which a JVM's FileChannel.tryLock sees; False if another process has it.

    Closing the descriptor drops it.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # a JVM locks the whole range, which includes the first byte
        else:
            import fcntl

            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True


_REPLACE_TRIES, _REPLACE_PAUSE_S = 20, 0.025


def replace(source: str, target: str) -> None:
    """`os.replace`. On Windows another program may have a file open for a moment (a scanner, a process that ends)."""
    if sys.platform == "win32":
        for _ in range(_REPLACE_TRIES):
            with suppress(PermissionError):
                os.replace(source, target)
                return
            time.sleep(_REPLACE_PAUSE_S)
    os.replace(source, target)


def disk_usage(path: str) -> tuple[int, int]:
    """Total bytes of the volume that holds `path`, and those that a process without privileges can fill."""
    if sys.platform == "win32" or IS_PORTABLE:
        import shutil

        total, _, free = shutil.disk_usage(path)
        return total, free
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


HAS_FLOCK: Final = sys.platform != "win32" and not IS_PORTABLE


def try_flock(fd: int) -> bool:
    """Take an exclusive `flock`; False where it is held elsewhere, and always without `HAS_FLOCK`.

    It belongs to the descriptor, not to the process as that of `try_lock` does.
    """
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def belongs_to_this_user(found: os.stat_result) -> bool:
    """Whether a file is this user's; always False on Windows, which has no user ids."""
    return sys.platform != "win32" and found.st_uid == os.getuid()
