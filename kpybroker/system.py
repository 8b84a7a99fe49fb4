"""The operating system: everything that Linux, macOS and Windows do differently, and nothing else.

What a system does not have is found out once, when this module is imported, and has a plain path where it is used.
`KPYBROKER_PORTABLE=1` in the environment makes Linux behave as if it had only what every system has, so that tests run
the plain paths: *portable mode*. Here, and only here, is code that such a test cannot reach: what is under
`sys.platform == "win32"` or `"darwin"`. docs/reference/operating-systems.md says what the plain paths lack.
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, NamedTuple, Protocol

IS_PORTABLE: Final = os.environ.get("KPYBROKER_PORTABLE") == "1"
"""Whether only what every system has is used, on Linux too."""

Buffer = bytes | bytearray | memoryview


def _of_the_system(module: Any, name: str) -> Any:
    """What not every system has; None where it is missing, also in portable mode: there a call of it must fail."""
    return None if IS_PORTABLE else getattr(module, name, None)


# --- sockets

HAS_EPOLL: Final = sys.platform == "linux" and not IS_PORTABLE
EPOLLIN: Final[int] = getattr(select, "EPOLLIN", 1)
EPOLLOUT: Final[int] = getattr(select, "EPOLLOUT", 4)
EPOLLERR: Final[int] = getattr(select, "EPOLLERR", 8)
EPOLLHUP: Final[int] = getattr(select, "EPOLLHUP", 16)
EPOLLRDHUP: Final[int] = getattr(select, "EPOLLRDHUP", 0x2000)
_POLLRDHUP: Final[int] = _of_the_system(select, "POLLRDHUP") or 0


class Epoll(Protocol):
    """The part of `select.epoll` that the poller uses."""

    closed: bool

    def register(self, fd: int, eventmask: int) -> None:
        """Watch a descriptor."""

    def modify(self, fd: int, eventmask: int) -> None:
        """Watch it for other events."""

    def unregister(self, fd: int) -> None:
        """Watch it no more."""

    def poll(self, timeout: float, maxevents: int) -> list[tuple[int, int]]:
        """Descriptors with their events."""
        ...

    def close(self) -> None:
        """Free its descriptor."""


def new_epoll() -> Epoll:
    """Only where `HAS_EPOLL`."""
    made: Epoll = getattr(select, "epoll")()  # noqa: B009 (for mypy, which knows that other systems have none)
    return made


def peer_has_left(sock: socket.socket) -> bool:
    """Whether the peer has closed its side. Only Linux says so while there are bytes to read, which may hide it."""
    if sys.platform == "linux" and _POLLRDHUP:
        asked = select.poll()
        asked.register(sock, _POLLRDHUP)
        return bool(asked.poll(0))
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


HAS_SENDFILE: Final = sys.platform == "linux" and hasattr(os, "sendfile") and not IS_PORTABLE
"""Only Linux's: elsewhere it has other arguments, or needs a blocking socket."""
sendfile: Final[Callable[[int, int, int, int], int]] = _of_the_system(os, "sendfile")
preadv: Final[Callable[..., int]] = _of_the_system(os, "preadv")
"""Only where `HAS_SENDFILE` or `RWF_NOWAIT`."""
RWF_NOWAIT: Final[int] = _of_the_system(os, "RWF_NOWAIT") or 0
"""0: whether a page is cached cannot be asked."""
MSG_MORE: Final[int] = _of_the_system(socket, "MSG_MORE") or 0
sendmsg: Final[Callable[[socket.socket, Sequence[Buffer], tuple[()], int], int]] = _of_the_system(
    socket.socket, "sendmsg"
)
HAS_SENDMSG: Final = sendmsg is not None
"""Only where `HAS_SENDMSG`."""


def claim_port(sock: socket.socket) -> None:
    """Before `bind`: take a port that a process left a moment ago, but never one that another process listens on."""
    if sys.platform == "win32":
        # SO_REUSEADDR would share the port with a process that listens on it.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def listening(host: str, port: int, backlog: int = 128) -> socket.socket:
    """A socket that listens on an address, or on the first one of a name; port 0 takes a free one. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        claim_port(made)
        made.bind(address)
        made.listen(backlog)
    except BaseException:
        made.close()
        raise
    return made


PASSES_SOCKETS: Final = sys.platform != "win32" and not IS_PORTABLE
"""Whether a child process can be given a socket by its descriptor."""


def reset_on_close(sock: socket.socket) -> None:
    """Let `close` drop what is not sent, and reset the connection (SO_LINGER of 0 seconds)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0))


def descriptors_max() -> int:
    """How many files and sockets this process may open; `sys.maxsize` without a limit."""
    if sys.platform == "win32" or IS_PORTABLE:
        return sys.maxsize
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def limit_memory(size: int) -> None:
    """Let this process have so many bytes at most, where the system can do that."""
    if sys.platform == "win32" or IS_PORTABLE:
        return
    import resource

    with suppress(ValueError, OSError):  # its own limit is lower, or it has none
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


# --- files

HAS_POSIX_FILES: Final = sys.platform != "win32" and not IS_PORTABLE
"""Whether files have `pread`, and may be renamed and removed while they are open."""
OPEN_FLAGS: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Nothing waits for the other end of a pipe that has the name of a file."""
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Opening a symbolic link fails with it; 0 on Windows, where making one takes a privilege."""
pread: Final[Callable[[int, int, int], bytes]] = _of_the_system(os, "pread")
pwrite: Final[Callable[[int, Buffer, int], int]] = _of_the_system(os, "pwrite")
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


# --- processes


_WINDOWS_NEW_PROCESS_GROUP = 0x200
OWN_SESSION: Final[dict[str, Any]] = (
    {"creationflags": _WINDOWS_NEW_PROCESS_GROUP} if sys.platform == "win32" else {"start_new_session": True}
)
"""Options with which a child process does not get the terminal's interrupts."""


def lower_priority(niceness: int) -> None:
    """Let other processes run first. Windows has another measure, and this does nothing there."""
    if sys.platform != "win32" and not IS_PORTABLE:
        os.nice(niceness)


def reader_has_gone(stream: IO[Any]) -> bool:
    """Whether this is a pipe that no process reads any more: found out without writing to it. Not on Windows."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    try:
        poll.register(stream.fileno(), select.POLLERR)
    except (OSError, ValueError):
        return False
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


_LOOK_EVERY_S: Final = 0.5


def wait_for_end_of(pid: int) -> None:
    """Return once a process has ended. One that this process may not see counts as one that has."""
    if is_ended(pid, None):
        return
    is_child = os.getppid() == pid
    while _exists(pid) and (not is_child or os.getppid() == pid):
        time.sleep(_LOOK_EVERY_S)


def is_ended(pid: int, within_s: float | None) -> bool:
    """Whether a process has ended, noticed at once; None waits as long as it takes.

    False too where that cannot be noticed.
    """
    if sys.platform != "linux" or IS_PORTABLE:
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:  # a kernel before 5.3
        return False
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = poll.poll(None if within_s is None else within_s * 1000)
    os.close(descriptor)
    return bool(ended)


def _exists(pid: int) -> bool:
    if sys.platform == "win32":  # os.kill would end it; so only the end of the parent is noticed
        return os.getppid() == pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def one_heap_for_all_threads() -> None:
    """Limits glibc to one heap (mallopt(3), M_ARENA_MAX), as other C libraries have.

    By default each thread has its own, and keeps what it has freed: large requests handled by several worker threads
    would take their memory once for each thread. With the GIL, several heaps gain nothing.
    """
    if sys.platform != "linux" or IS_PORTABLE:
        return
    import ctypes  # trio has it too

    arena_max = -8
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(arena_max, 1)


def resident_bytes() -> int | None:
    """Memory of this process that is in RAM; None where the system does not say."""
    if sys.platform != "linux" or IS_PORTABLE:
        return None
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def give_back_memory() -> None:
    """Return freed memory to the system, in the middle of the heap too (malloc_trim(3)): glibc keeps it by itself.

    It takes some 10 ms for 100 MB, during which other threads can allocate no large pieces.
    """
    if sys.platform != "linux" or IS_PORTABLE:
        return
    import ctypes  # trio has it too

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


# --- secrets

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
"""Modes of what only this user may read. Windows has no modes: there the directory above decides."""
_OTHERS, _OTHERS_ENTER, _OTHERS_WRITE = 0o077, 0o011, 0o022


def make_private_directory(path: str) -> None:
    """Create a directory that only this user may enter, and its parents as usual, unless it exists. Raises OSError."""
    os.makedirs(path, PRIVATE_DIRECTORY, exist_ok=True)


def take_directory(path: str) -> None:
    """As `make_private_directory`; one that exists must be this user's, with what is in it, and for it alone to write.

    For names that are made up and not given: another user may have made it first. Raises OSError.
    """
    make_private_directory(path)
    if sys.platform == "win32":
        return
    with os.scandir(path) as entries:
        inside = [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, found in ((path, os.lstat(path)), (path, os.stat(path)), *inside):
        if not belongs_to_this_user(found):
            raise PermissionError(errno.EPERM, "it belongs to another user", name)
        if found.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(found.st_mode):
            raise PermissionError(errno.EPERM, "other users may write to it", name)


def shown_to_others(path: str) -> int:
    """The mode of a file or directory that other users of the machine may read or change.

    0 where they cannot, since a directory above is closed to them too, and for what cannot be examined.
    """
    if sys.platform == "win32":
        return 0
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        above = os.path.dirname(os.path.realpath(path)) if mode & _OTHERS else ""
        while above:
            if not os.stat(above).st_mode & _OTHERS_ENTER:
                return 0
            if os.path.dirname(above) == above:
                return mode
            above = os.path.dirname(above)
    except OSError:
        return 0
    return 0


@contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes, for libraries that read secrets from files alone.

    On Linux it is in memory and has no name in any directory. Elsewhere it is in a directory of this user's, while
    the block runs.
    """
    memfd_create = _of_the_system(os, "memfd_create")
    if memfd_create is None:
        import tempfile  # not needed by most starts

        with tempfile.TemporaryDirectory(prefix="kpybroker-") as directory:  # its mode is 0700
            path = os.path.join(directory, "private")
            with open(path, "wb") as file:
                file.write(data)
            yield path
        return
    descriptor = memfd_create("private")  # closed in the programs that this one starts: the default
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


# --- the process


class ProcessUsage(NamedTuple):
    """What the process uses; None for what the system does not say."""

    cpu_s: float
    resident_bytes: int | None = None
    virtual_bytes: int | None = None
    open_fds: int | None = None
    max_fds: int | None = None
    start_time_s: float | None = None


_PROC: Final = "/proc/self" if sys.platform == "linux" and not IS_PORTABLE else ""


def process_usage() -> ProcessUsage:
    """Of this process, now."""
    usage = ProcessUsage(time.process_time(), max_fds=descriptors_max())
    if sys.platform == "win32" or not _PROC:
        return usage
    with suppress(OSError, ValueError, IndexError):
        with open(f"{_PROC}/statm", encoding="ascii") as file:
            virtual, resident = file.read().split()[:2]
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        usage = usage._replace(
            virtual_bytes=int(virtual) * page_bytes,
            resident_bytes=int(resident) * page_bytes,
            open_fds=len(os.listdir(f"{_PROC}/fd")),
            start_time_s=_start_time_s(os.sysconf("SC_CLK_TCK")),
        )
    return usage


def _start_time_s(ticks_a_second: int) -> float:
    """Since the epoch: the time of the boot, and the ticks from there to the start."""
    with open(f"{_PROC}/stat", encoding="utf-8") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    with open("/proc/stat", encoding="ascii") as file:
        boot_s = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    return boot_s + ticks / ticks_a_second


def disk_bytes() -> tuple[int | None, int | None]:
    """What this process has read from and written to disks; None where the system does not say, or not to us."""
    if not _PROC:
        return None, None
    try:
        with open(f"{_PROC}/io", encoding="ascii") as file:
            found = dict(line.split(": ") for line in file.read().splitlines())
        return int(found["read_bytes"]), int(found["write_bytes"])
    except (OSError, ValueError, KeyError):
        return None, None
