"""A file system in memory that forgets what was not synced, and wrappers that fail. For storage tests.

`LossyFiles` keeps of every file what it holds and what is on the device, and of every directory likewise. `crash`
returns the file system after a power cut: what was synced is there; of what was not, each piece is there or not as the
given random generator decides, and a file cut short may hold zeros in its unsynced part. `operations` counts the calls
that change or sync something (with `counts_reads` the others too), and `before_operation` may raise, which stops a run
at that very call. `syncs_all`: whether all can be synced at once.

Names are lost in one of two ways. POSIX promises nothing: every name that was not synced is there or not, whatever
became of the others. Journalling file systems (ext4, XFS, btrfs) keep the order in which names changed: `in_order`.
"""

from __future__ import annotations

import errno
import os
import posixpath
import random
from collections.abc import Callable

from kpybroker.storage.disk.files import Buffer, DirEntry, DiskUsage, FileStat


class Inode:
    __slots__ = ("data", "durable", "mtime_ms")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = b""
        self.mtime_ms = 0


class Directory:
    """`durable` are the names after the last sync of this directory, `committed` those that the journal has on disk."""

    __slots__ = ("committed", "durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Directory] = {}
        self.durable: dict[str, Inode | Directory] = {}
        self.committed: dict[str, Inode | Directory] = {}


Change = list[tuple[Directory, str, Inode | Directory | None]]
"""Names that change together: each in its directory, None where it goes."""


class PowerCut(BaseException):
    """Stops the program under test where it stands."""


def failing(prefix: str, code: int = errno.EIO) -> Callable[[int, str, str], None]:
    """For `before_operation`: everything that begins with a path fails."""

    def fail(number: int, kind: str, path: str) -> None:
        if path.startswith(prefix):
            raise OSError(code, os.strerror(code), path)

    return fail


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


class LossyFile:
    def __init__(self, files: LossyFiles, inode: Inode, path: str) -> None:
        self._files = files
        self._inode = inode
        self._path = path
        self.is_open = True

    def pread(self, size: int, position: int) -> bytes:
        assert self.is_open
        self._files.look("pread", self._path)
        return bytes(self._inode.data[position : position + size])

    def pwrite(self, data: Buffer, position: int) -> int:
        assert self.is_open
        self._files.operation("pwrite", self._path)
        count = self._files.writable_bytes(len(data))
        held = self._inode.data
        if len(held) < position:
            held.extend(bytes(position - len(held)))
        held[position : position + count] = memoryview(data)[:count]
        return count

    def truncate(self, size: int) -> None:
        assert self.is_open
        self._files.operation("truncate", self._path)
        held = self._inode.data
        if size <= len(held):
            del held[size:]
        else:
            held.extend(bytes(size - len(held)))

    def sync(self) -> None:
        assert self.is_open
        self._files.operation("sync", self._path)
        self._inode.durable = bytes(self._inode.data)

    def size(self) -> int:
        self._files.look("size", self._path)
        return len(self._inode.data)

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a file in memory has no descriptor")

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._files.open_count -= 1


class _Lock:
    def __init__(self, files: LossyFiles, path: str) -> None:
        self._files = files
        self._path = path

    def release(self) -> None:
        self._files.locked.discard(self._path)


class LossyFiles:
    """The file system. Paths are absolute; `/` is there from the start, and durable."""

    def __init__(self) -> None:
        self.root = Directory()
        self.locked: set[str] = set()
        self.open_count = 0
        self.operations = 0
        self.counts_reads = False
        self.syncs_all = False
        self.before_operation: Callable[[int, str, str], None] | None = None
        self.free_bytes: int | None = None
        self._journal: list[Change] = []

    def operation(self, kind: str, path: str) -> None:
        self.operations += 1
        if self.before_operation is not None:
            self.before_operation(self.operations, kind, path)

    def look(self, kind: str, path: str) -> None:
        """A call that changes nothing."""
        if self.counts_reads:
            self.operation(kind, path)

    def _change(self, *changes: tuple[str, Inode | Directory | None]) -> None:
        """Names come and go, all at once."""
        entries: Change = []
        for path, found in changes:
            directory, name = self._directory(posixpath.dirname(path)), posixpath.basename(path)
            if found is None:
                del directory.names[name]
            else:
                directory.names[name] = found
            entries.append((directory, name, found))
        self._journal.append(entries)

    def writable_bytes(self, wanted: int) -> int:
        if self.free_bytes is None:
            return wanted
        count = min(wanted, self.free_bytes)
        if count == 0 and wanted:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.free_bytes -= count
        return count

    def _directory(self, path: str) -> Directory:
        here = self.root
        for part in path.strip("/").split("/"):
            if part:
                found = here.names.get(part)
                if not isinstance(found, Directory):
                    raise _missing(path)
                here = found
        return here

    def _find(self, path: str) -> Inode | Directory | None:
        try:
            return self._directory(posixpath.dirname(path)).names.get(posixpath.basename(path))
        except FileNotFoundError:
            return None

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> LossyFile:
        found = self._find(path)
        if found is None:
            if not create:
                raise _missing(path)
            self._directory(posixpath.dirname(path))
            self.operation("create", path)
            found = Inode()
            self._change((path, found))
        else:
            self.look("open", path)
        assert isinstance(found, Inode), f"{path} is a directory"
        self.open_count += 1
        return LossyFile(self, found, path)

    def rename(self, source: str, target: str) -> None:
        found = self._find(source)
        if found is None:
            raise _missing(source)
        self.operation("rename", source)
        self._change((source, None), (target, found))

    def unlink(self, path: str) -> None:
        if not isinstance(self._find(path), Inode):
            raise _missing(path)
        self.operation("unlink", path)
        self._change((path, None))

    def listdir(self, path: str) -> list[DirEntry]:
        self.look("listdir", path)
        return [DirEntry(name, isinstance(found, Directory)) for name, found in self._directory(path).names.items()]

    def mkdir(self, path: str) -> None:
        parent = self._directory(posixpath.dirname(path))
        if posixpath.basename(path) in parent.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.operation("mkdir", path)
        self._change((path, Directory()))

    def rmdir(self, path: str) -> None:
        if self._directory(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self.operation("rmdir", path)
        self._change((path, None))

    def stat(self, path: str) -> FileStat | None:
        self.look("stat", path)
        if path == "/":
            return FileStat(0, 0, True)
        found = self._find(path)
        if found is None:
            return None
        if isinstance(found, Directory):
            return FileStat(0, 0, True)
        return FileStat(len(found.data), found.mtime_ms, False)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise _missing(path)
        found.mtime_ms = mtime_ms

    def sync_dir(self, path: str) -> None:
        directory = self._directory(path)
        self.operation("sync_dir", path)
        directory.durable = dict(directory.names)
        last = max(
            (at for at, change in enumerate(self._journal) if any(e[0] is directory for e in change)), default=-1
        )
        for change in self._journal[: last + 1]:
            for changed, name, found in change:
                _set(changed.committed, name, found)
        del self._journal[: last + 1]

    def sync_all(self, path: str) -> bool:
        self._directory(path)
        if not self.syncs_all:
            return False
        self.operation("sync_all", path)
        _make_durable(self.root)
        self._journal.clear()
        return True

    def lock(self, path: str) -> _Lock | None:
        if path in self.locked:
            return None
        self.open(path, create=True).close()
        self.locked.add(path)
        return _Lock(self, path)

    def disk_usage(self, path: str) -> DiskUsage:
        self._directory(path)
        return DiskUsage(1 << 40, 1 << 39)

    def real_path(self, path: str) -> str:
        return path

    def crash(self, chance: random.Random, *, in_order: bool = False) -> LossyFiles:
        """The file system after a power cut."""
        after = LossyFiles()
        kept: dict[int, dict[str, Inode | Directory]] = {}
        if in_order:
            for change in self._journal[: chance.randint(0, len(self._journal))]:
                for directory, name, found in change:
                    _set(kept.setdefault(id(directory), dict(directory.committed)), name, found)

        def names_of(directory: Directory) -> dict[str, Inode | Directory]:
            if in_order:
                return kept.get(id(directory), directory.committed)
            return _any_names(directory, chance)

        after.syncs_all = self.syncs_all
        after.root = _survivor(self.root, names_of, chance, {})
        return after

    def snapshot(self) -> LossyFiles:
        """The file system after the process was killed: nothing is lost."""
        after = LossyFiles()
        after.syncs_all = self.syncs_all
        after.root = _copy(self.root)
        return after


def _make_durable(directory: Directory) -> None:
    directory.durable, directory.committed = dict(directory.names), dict(directory.names)
    for found in directory.names.values():
        if isinstance(found, Directory):
            _make_durable(found)
        else:
            found.durable = bytes(found.data)


def _set(names: dict[str, Inode | Directory], name: str, found: Inode | Directory | None) -> None:
    if found is None:
        names.pop(name, None)
    else:
        names[name] = found


def _any_names(directory: Directory, chance: random.Random) -> dict[str, Inode | Directory]:
    names = {}
    for name in sorted(directory.names.keys() | directory.durable.keys()):
        now, durable = directory.names.get(name), directory.durable.get(name)
        found = now if now is durable or chance.random() < 0.5 else durable
        if found is not None:
            names[name] = found
    return names


def _survivor(
    directory: Directory,
    names_of: Callable[[Directory], dict[str, Inode | Directory]],
    chance: random.Random,
    seen: dict[int, Inode],
) -> Directory:
    after = Directory()
    for name, found in sorted(names_of(directory).items()):
        if isinstance(found, Directory):
            after.names[name] = _survivor(found, names_of, chance, seen)
        else:
            if id(found) not in seen:
                seen[id(found)] = _surviving_file(found, chance)
            after.names[name] = seen[id(found)]
    after.durable, after.committed = dict(after.names), dict(after.names)
    return after


def _surviving_file(inode: Inode, chance: random.Random) -> Inode:
    """The synced content; or, of what was written since, a prefix, perhaps with zeros where blocks never came."""
    after = Inode()
    after.mtime_ms = inode.mtime_ms
    held, durable = bytes(inode.data), inode.durable
    if held == durable or chance.random() < 0.3:
        after.data = bytearray(durable)
    else:
        # Where the file was cut and written again, the new length may come without the old bytes or the other way.
        same = len(posixpath.commonprefix([held, durable]))
        kept = chance.randint(same, len(held))
        after.data = bytearray(held[:kept])
        if chance.random() < 0.3:
            after.data.extend(bytes(chance.randint(0, len(held) - kept)))
    after.durable = bytes(after.data)
    return after


def _copy(directory: Directory) -> Directory:
    after = Directory()
    for name, found in directory.names.items():
        if isinstance(found, Directory):
            after.names[name] = _copy(found)
        else:
            inode = after.names[name] = Inode()
            inode.data, inode.durable, inode.mtime_ms = bytearray(found.data), bytes(found.data), found.mtime_ms
    after.durable, after.committed = dict(after.names), dict(after.names)
    return after
