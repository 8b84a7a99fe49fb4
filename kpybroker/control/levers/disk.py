"""A disk that fails on command: a wrapper around any `Files`, with rules that are added and removed at any time.

The kinds of a rule:

* `full`: writes fail with ENOSPC once `after` bytes are written, and nothing can be created then;
* `slow_fsync`: every sync takes `delay_ms` longer, in the thread that makes it. A sync in the thread that made this
  object, the loop's, is not delayed: it would hold all brokers of the process;
* `eio`: operations fail with EIO, after `after` that do not;
* `torn_write`: of the last write before a crash only the first half is on the disk;
* `crash_before_fsync`: what was written and not synced is lost in a crash. Names of files are not lost, as with a
  file system that journals its metadata (ext4, XFS).

`crash` does to the files what the kill of a broker, or with the last two kinds the crash of its machine does. A rule
applies to what is written while it is set.

Not covered: what does not pass through `Files`. These are the file of the embedded coordination, compaction (in a
process of its own), and bytes on their way through `sendfile`; but an `eio` of reads also fails the call that begins to
send. No trio here, and no clock: a slow sync waits in real time.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from kpybroker.control.levers.unsynced import Unsynced, Write, about_to_truncate, about_to_write
from kpybroker.storage.disk.files import Buffer, DirEntry, DiskUsage, File, FileLock, Files, FileStat

FULL, SLOW_FSYNC, EIO = "full", "slow_fsync", "eio"
TORN_WRITE, CRASH_BEFORE_FSYNC = "torn_write", "crash_before_fsync"
KINDS = (FULL, SLOW_FSYNC, EIO, TORN_WRITE, CRASH_BEFORE_FSYNC)

OPERATIONS = ("open", "create", "read", "write", "truncate", "sync", "rename", "unlink", "list", "mkdir", "rmdir")
"""What an `eio` can name. `sync` is of files and of directories; `list` includes `stat`."""

_NEED_SPACE = frozenset(("create", "mkdir"))


@dataclass(frozen=True, slots=True)
class DiskRule:
    """What fails. `path` is a glob for a whole path or for its end; `*` also matches `/`.

    `operations` are those of an `eio`; empty: all. `after`: bytes of a `full`, operations of an `eio`. `times`: how
    often it happens at most; None: until the rule is removed.
    """

    kind: str
    path: str = "*"
    operations: frozenset[str] = frozenset()
    delay_ms: int = 0
    after: int = 0
    times: int | None = None

    def applies(self, operation: str, path: str) -> bool:
        """Whether the rule is about this operation on this file or directory."""
        if self.operations and operation not in self.operations:
            return False
        return self.path == "*" or fnmatchcase(path, self.path) or fnmatchcase(path, f"*/{self.path}")


@dataclass(eq=False, slots=True)
class DiskFault:
    """A rule in force. `hits`: how often it has happened. `passed`: bytes or operations counted towards `after`.

    `on_hit` is called for each hit, perhaps in a thread, and must return at once.
    """

    rule: DiskRule
    on_hit: Callable[[], None] = lambda: None
    hits: int = 0
    passed: int = 0
    removed: threading.Event = field(default_factory=threading.Event)

    def hit(self) -> None:
        """It has happened once more."""
        self.hits += 1
        self.on_hit()

    @property
    def is_over(self) -> bool:
        """Whether it has happened as often as it may."""
        return self.rule.times is not None and self.hits >= self.rule.times


class FaultyFile:
    """An open file of `FaultyFiles`."""

    __slots__ = ("_files", "_inner", "_unsynced")

    def __init__(self, files: FaultyFiles, inner: File, unsynced: Unsynced) -> None:
        self._files = files
        self._inner = inner
        self._unsynced = unsynced

    def pread(self, size: int, position: int) -> bytes:
        """As `File.pread`."""
        if self._files.faults:
            self._files.check("read", self._unsynced.path)
        return self._inner.pread(size, position)

    def pwrite(self, data: Buffer, position: int) -> int:
        """As `File.pwrite`; a disk that becomes full takes a part."""
        files = self._files
        if not files.faults:
            return self._inner.pwrite(data, position)
        files.check("write", self._unsynced.path)
        count = files.take_space(self._unsynced.path, len(data))
        if files.keeps_writes(self._unsynced.path):
            files.note(self._unsynced, about_to_write(self._inner, position, position + count))
        return self._inner.pwrite(memoryview(data)[:count], position)

    def truncate(self, size: int) -> None:
        """As `File.truncate`."""
        files = self._files
        if files.faults:
            files.check("truncate", self._unsynced.path)
            if files.keeps_writes(self._unsynced.path):
                files.note(self._unsynced, about_to_truncate(self._inner, size))
        self._inner.truncate(size)

    def sync(self) -> None:
        """As `File.sync`."""
        if not self._files.faults:
            self._inner.sync()
            return
        with self._files.syncing(self._unsynced):
            self._inner.sync()

    def size(self) -> int:
        """As `File.size`."""
        return self._inner.size()

    def fileno(self) -> int:
        """As `File.fileno`, which is what a read through the descriptor begins with."""
        if self._files.faults:
            self._files.check("read", self._unsynced.path)
        return self._inner.fileno()

    def close(self) -> None:
        """As `File.close`."""
        self._inner.close()
        self._files.closed(self, self._unsynced)


class FaultyFiles:
    """`inner`, with the faults that are set. Faults outlive a `crash`, as those of a disk outlive a process."""

    def __init__(self, inner: Files) -> None:
        self._inner = inner
        self._loop_thread = threading.get_ident()
        self._guard = threading.Lock()  # over counters and entries; never held during input or output
        self._known: dict[str, Unsynced] = {}  # files that are open, or have writes that are not synced
        self._open: set[FaultyFile] = set()
        self._locks: dict[str, FileLock] = {}
        self._last_write: tuple[Unsynced, Write] | None = None  # for torn writes
        self.faults: tuple[DiskFault, ...] = ()

    # --- rules

    def add(self, rule: DiskRule, on_hit: Callable[[], None] = lambda: None) -> DiskFault:
        """Let this happen from now on; `on_hit` as in `DiskFault`."""
        fault = DiskFault(rule, on_hit)
        self.faults += (fault,)
        return fault

    def remove(self, fault: DiskFault) -> None:
        """End a fault, also for syncs that it holds. Does nothing for one that is not set."""
        self.faults = tuple(other for other in self.faults if other is not fault)
        fault.removed.set()
        with self._guard:
            for unsynced in list(self._known.values()):
                if not self.keeps_writes(unsynced.path):
                    unsynced.writes.clear()
                    self._forget_unused(unsynced)

    def check(self, operation: str, *paths: str) -> None:
        """Raises OSError if the operation, which is about any of these paths, fails."""
        for fault in self.faults:
            is_meant = fault.rule.kind == EIO and any(fault.rule.applies(operation, path) for path in paths)
            if is_meant and self._happens(fault):
                raise OSError(errno.EIO, os.strerror(errno.EIO), paths[0])
        if operation in _NEED_SPACE:
            self.take_space(paths[0], 0)

    def _happens(self, fault: DiskFault) -> bool:
        with self._guard:
            if fault.is_over:
                return False
            if fault.rule.kind == EIO and fault.passed < fault.rule.after:
                fault.passed += 1
                return False
            fault.hit()
            return True

    def take_space(self, path: str, wanted: int) -> int:
        """How many of these bytes the disk takes; none are wanted by what needs any space at all. Raises ENOSPC."""
        count = wanted
        for fault in self.faults:
            rule = fault.rule
            if rule.kind != FULL or fault.is_over or not rule.applies("write", path):
                continue
            count = min(count, rule.after - fault.passed)
            if rule.after <= fault.passed and self._happens(fault):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            fault.passed += count
        return count

    def keeps_writes(self, path: str) -> bool:
        """Whether a crash may take writes to this file."""
        return any(
            fault.rule.kind in (CRASH_BEFORE_FSYNC, TORN_WRITE)
            and not fault.is_over
            and fault.rule.applies("write", path)
            for fault in self.faults
        )

    def note(self, unsynced: Unsynced, write: Write) -> None:
        """Remember how to undo a write or truncation, which is made next."""
        with self._guard:
            unsynced.note(write)
            if write.end > write.position:
                self._last_write = (unsynced, write)
            elif self._last_write is not None and self._last_write[0] is unsynced:
                self._last_write = None  # it may be cut off

    @contextmanager
    def syncing(self, unsynced: Unsynced) -> Iterator[None]:
        """Around the sync of a file: what was written before it is on the disk afterwards. Raises OSError."""
        self._delay_sync(unsynced.path)
        self.check("sync", unsynced.path)
        with self._guard:
            begun, last = unsynced.sync_begins(), self._last_write
        yield
        with self._guard:
            unsynced.synced(begun)
            if last is not None and last[0] is unsynced and self._last_write is last:
                self._last_write = None

    def _delay_sync(self, path: str) -> None:
        if threading.get_ident() == self._loop_thread:
            return
        for fault in self.faults:
            if fault.rule.kind == SLOW_FSYNC and fault.rule.applies("sync", path) and self._happens(fault):
                fault.removed.wait(fault.rule.delay_ms / 1000)

    # --- a crash

    def crash(self) -> None:
        """Close every file and release every lock, as the kernel does when a process is killed, and lose what the rules
        say is not on the disk. Nothing may use these files during the call. Raises OSError."""
        for file in list(self._open):
            file.close()
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()
        unsynced, self._known = list(self._known.values()), {}
        last, self._last_write = self._last_write, None
        for fault in self.faults:
            if fault.rule.kind == CRASH_BEFORE_FSYNC:
                lost = [one for one in unsynced if one.writes and _is_lost(fault, one.path)]
                for one in lost:
                    self._change(one.path, one.lose)
                if lost:
                    fault.hit()
            elif fault.rule.kind == TORN_WRITE and last is not None:
                one, write = last
                if one.writes and _is_lost(fault, one.path):
                    self._change(one.path, partial(write.undo, kept=(write.end - write.position) // 2))
                    fault.hit()

    def _change(self, path: str, change: Callable[[File], None]) -> None:
        file = self._inner.open(path)
        try:
            change(file)
        finally:
            file.close()

    # --- what is known of files

    def _file(self, path: str) -> Unsynced:
        with self._guard:
            unsynced = self._known.setdefault(path, Unsynced(path))
            unsynced.opens += 1
            return unsynced

    def closed(self, file: FaultyFile, unsynced: Unsynced) -> None:
        """Forget a file that is closed, unless a crash may take something from it."""
        if file in self._open:
            self._open.discard(file)
            with self._guard:
                unsynced.opens -= 1
                self._forget_unused(unsynced)

    def _forget_unused(self, unsynced: Unsynced) -> None:
        if not unsynced.opens and not unsynced.writes and self._known.get(unsynced.path) is unsynced:
            del self._known[unsynced.path]

    def _renamed(self, source: str, target: str) -> None:
        """A file, or a directory with all that is below it, has another name."""
        with self._guard:
            for path in [path for path in self._known if path == source or path.startswith(f"{source}/")]:
                unsynced = self._known.pop(path)
                unsynced.path = target + path[len(source) :]
                self._known[unsynced.path] = unsynced

    # --- the contract

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> FaultyFile:
        """As `Files.open`."""
        if self.faults:
            is_new = create and self._inner.stat(path) is None
            self.check("create" if is_new else "open", path)
        inner = self._inner.open(path, create=create, writable=writable)
        file = FaultyFile(self, inner, self._file(path))
        self._open.add(file)
        return file

    def rename(self, source: str, target: str) -> None:
        """As `Files.rename`; an `eio` may name either path."""
        if self.faults:
            self.check("rename", source, target)
        self._inner.rename(source, target)
        self._renamed(source, target)

    def unlink(self, path: str) -> None:
        """As `Files.unlink`."""
        if self.faults:
            self.check("unlink", path)
        self._inner.unlink(path)
        with self._guard:
            if (unsynced := self._known.pop(path, None)) is not None:
                unsynced.writes.clear()

    def listdir(self, path: str) -> list[DirEntry]:
        """As `Files.listdir`."""
        if self.faults:
            self.check("list", path)
        return self._inner.listdir(path)

    def mkdir(self, path: str) -> None:
        """As `Files.mkdir`."""
        if self.faults:
            self.check("mkdir", path)
        self._inner.mkdir(path)

    def rmdir(self, path: str) -> None:
        """As `Files.rmdir`."""
        if self.faults:
            self.check("rmdir", path)
        self._inner.rmdir(path)

    def stat(self, path: str) -> FileStat | None:
        """As `Files.stat`."""
        if self.faults:
            self.check("list", path)
        return self._inner.stat(path)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """As `Files.set_mtime`, which never fails by a rule."""
        self._inner.set_mtime(path, mtime_ms)

    def sync_dir(self, path: str) -> None:
        """As `Files.sync_dir`."""
        if self.faults:
            self._delay_sync(path)
            self.check("sync", path)
        self._inner.sync_dir(path)

    def sync_all(self, path: str) -> bool:
        """As `Files.sync_all`; with a fault each file has to be synced, as a rule may be about any of them."""
        return not self.faults and self._inner.sync_all(path)

    def lock(self, path: str) -> FileLock | None:
        """As `Files.lock`; a `crash` releases it."""
        lock = self._inner.lock(path)
        if lock is not None:
            self._locks[path] = lock
        return lock

    def disk_usage(self, path: str) -> DiskUsage:
        """As `Files.disk_usage`; a disk that a rule has filled has no space."""
        usage = self._inner.disk_usage(path)
        left = [f.rule.after - f.passed for f in self.faults if f.rule.kind == FULL and not f.is_over]
        return usage._replace(usable_bytes=max(min([usage.usable_bytes, *left]), 0))

    def real_path(self, path: str) -> str:
        """As `Files.real_path`."""
        return self._inner.real_path(path)


def _is_lost(fault: DiskFault, path: str) -> bool:
    return not fault.is_over and fault.rule.applies("write", path)
