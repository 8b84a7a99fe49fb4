"""Processes: this one's limits, memory and use of the machine, and the end of others."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from contextlib import suppress
from typing import IO, Any, Final, NamedTuple

from kpybroker.system import IS_PORTABLE

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


def limit_files(size: int) -> None:
    """Let this process write files of so many bytes at most, and leave none when it fails, where the system can."""
    if sys.platform == "win32" or IS_PORTABLE:
        return
    import resource

    for what, most in ((resource.RLIMIT_FSIZE, size), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def highest_memory() -> int:
    """The most bytes that this process has had; 0 where the system does not say."""
    if sys.platform == "win32" or IS_PORTABLE:
        return 0
    if sys.platform == "linux":  # where getrusage() says what the process had that started this one
        with open("/proc/self/status", "rb") as file:
            found = re.search(rb"VmHWM:\s+(\d+) kB", file.read())
        return 0 if found is None else int(found[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def end_after(cpu_s: float, seconds: float) -> None:
    """Have the system end this process when it has used so much of a processor, or after so long; 0 calls that off.

    It ends within a library too. Nothing happens where the system has no such timers.
    """
    if sys.platform == "win32" or IS_PORTABLE:
        return
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, seconds)


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
