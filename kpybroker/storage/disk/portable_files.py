"""The file system with only what every operating system has: no `pread`, and no rename or removal of what is open.

The rest of storage relies on POSIX: an open file may be renamed, removed or replaced, and who has it open keeps its
bytes (`slice`). Here the same holds by other means. A `PortableFile` knows its path and closes its descriptor when the
file or a directory above it is renamed; the next call opens it again under the new path. A file that is removed or
replaced while it is open is *set aside*: renamed to a name ending in `.deleted`, hidden, and removed when it is closed
(or, after a crash, by the loading of its log). A directory that is removed with such files in it goes with the last.

Each file has a lock, since it has one position for all threads. `PortableFiles` has one for what is open.
Order: first that, then a file's.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable

from kpybroker.storage.disk.files import Buffer, DirEntry, DiskUsage, FileStat
from kpybroker.storage.disk.names import DELETED_SUFFIX
from kpybroker.storage.disk.os_files import OsFileLock, OsFiles, open_descriptor
from kpybroker.system.files import sync_data


class PortableFile:
    """An open file: a path, and a descriptor while there is one."""

    __slots__ = ("_fd", "_forget", "_is_closed", "_writable", "lock", "path")

    def __init__(self, path: str, fd: int, writable: bool, forget: Callable[[PortableFile], None]) -> None:
        self.path = path
        self.lock = threading.Lock()
        self._fd = fd
        self._writable = writable
        self._forget = forget
        self._is_closed = False

    def pread(self, size: int, position: int) -> bytes:
        """Seek and read."""
        with self.lock:
            fd = self._descriptor()
            os.lseek(fd, position, os.SEEK_SET)
            return os.read(fd, size)

    def pwrite(self, data: Buffer, position: int) -> int:
        """Seek and write."""
        with self.lock:
            fd = self._descriptor()
            os.lseek(fd, position, os.SEEK_SET)
            return os.write(fd, data)

    def truncate(self, size: int) -> None:
        """Set the length."""
        with self.lock:
            os.ftruncate(self._descriptor(), size)

    def sync(self) -> None:
        """Data and length are on the device when this returns."""
        with self.lock:
            sync_data(self._descriptor())

    def size(self) -> int:
        """The length in bytes."""
        with self.lock:
            return os.fstat(self._descriptor()).st_size

    def fileno(self) -> int:
        """Raises OSError(EBADF): a rename would close it."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._forget(self)

    def close_descriptor(self) -> None:
        """Close the descriptor; the caller has `lock`. The next call opens the file again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _descriptor(self) -> int:
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if self._fd < 0:
            self._fd = open_descriptor(self.path, writable=self._writable)
        return self._fd


class PortableFiles:
    """A file system for one broker. All its changes of names must go through one object."""

    def __init__(self) -> None:
        self._system = OsFiles()
        self._lock = threading.RLock()
        self._open: dict[str, set[PortableFile]] = {}
        self._set_aside: set[str] = set()
        self._doomed_dirs: set[str] = set()
        self._number = 0

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> PortableFile:
        """As `Files.open`."""
        with self._lock:
            key = _key(path)
            file = PortableFile(key, open_descriptor(key, create=create, writable=writable), writable, self._closed)
            self._open.setdefault(key, set()).add(file)
            return file

    def rename(self, source: str, target: str) -> None:
        """As `Files.rename`; not atomic where the target is open."""
        source, target = _key(source), _key(target)
        with self._lock:
            if target in self._open and os.path.exists(source) and source != target:
                self._put_aside(target)
            self._rename(source, target)

    def unlink(self, path: str) -> None:
        """As `Files.unlink`."""
        path = _key(path)
        with self._lock:
            if path in self._open and os.path.exists(path):
                self._put_aside(path)
            else:
                os.unlink(path)

    def listdir(self, path: str) -> list[DirEntry]:
        """As `Files.listdir`."""
        with self._lock:
            gone = self._set_aside | self._doomed_dirs
            return [entry for entry in self._system.listdir(path) if _key(os.path.join(path, entry.name)) not in gone]

    def mkdir(self, path: str) -> None:
        """As `Files.mkdir`."""
        with self._lock:
            if _key(path) in self._doomed_dirs:
                self._doomed_dirs.remove(_key(path))
            else:
                self._system.mkdir(path)

    def rmdir(self, path: str) -> None:
        """As `Files.rmdir`."""
        with self._lock:
            if any(os.path.dirname(aside) == _key(path) for aside in self._set_aside) and not self.listdir(path):
                self._doomed_dirs.add(_key(path))
            else:
                os.rmdir(path)

    def stat(self, path: str) -> FileStat | None:
        """As `Files.stat`."""
        with self._lock:
            key = _key(path)
            return None if key in self._set_aside or key in self._doomed_dirs else self._system.stat(path)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """As `Files.set_mtime`."""
        self._system.set_mtime(path, mtime_ms)

    def sync_dir(self, path: str) -> None:
        """As `Files.sync_dir`; does nothing."""
        self._system.sync_dir(path)

    def sync_all(self, path: str) -> bool:
        """As `Files.sync_all`; not every system has it."""
        return False

    def lock(self, path: str) -> OsFileLock | None:
        """As `Files.lock`."""
        return self._system.lock(path)

    def disk_usage(self, path: str) -> DiskUsage:
        """As `Files.disk_usage`."""
        return self._system.disk_usage(path)

    def real_path(self, path: str) -> str:
        """As `Files.real_path`."""
        return self._system.real_path(path)

    def _rename(self, source: str, target: str) -> None:
        """Rename a file or a directory, and what is open of it."""
        inside = os.path.join(source, "")
        moved = [path for path in self._open if path == source or path.startswith(inside)]
        files = [file for path in moved for file in self._open[path]]
        for file in files:
            file.lock.acquire()
        try:
            for file in files:
                file.close_descriptor()
            self._system.rename(source, target)
            for path in moved:
                new = target + path[len(source) :]
                opened = self._open.pop(path)
                self._open.setdefault(new, set()).update(opened)
                for file in opened:
                    file.path = new
                if path in self._set_aside:
                    self._set_aside.remove(path)
                    self._set_aside.add(new)
        finally:
            for file in files:
                file.lock.release()

    def _put_aside(self, path: str) -> None:
        self._number += 1
        aside = f"{path}.{self._number}{DELETED_SUFFIX}"
        self._rename(path, aside)
        self._set_aside.add(aside)

    def _closed(self, file: PortableFile) -> None:
        with self._lock:
            with file.lock:
                file.close_descriptor()
            path = file.path
            opened = self._open[path]
            opened.discard(file)
            if opened:
                return
            del self._open[path]
            if path in self._set_aside:
                self._set_aside.remove(path)
                os.unlink(path)
                self._remove_doomed(os.path.dirname(path))

    def _remove_doomed(self, directory: str) -> None:
        is_empty = not any(os.path.dirname(aside) == directory for aside in self._set_aside)
        if directory in self._doomed_dirs and is_empty:
            self._doomed_dirs.remove(directory)
            os.rmdir(directory)


def _key(path: str) -> str:
    return os.path.normpath(path)
