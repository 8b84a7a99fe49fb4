"""What Spark does in a run of `make bench-pipelines`, from the stacks of its threads a few times a second.

A JVM gives its stacks over the socket that its own tools use, so that a sample costs no JVM of its own. Counted are the
threads of tasks, in the executors; and the driver, where no query has tasks at that moment: it plans, asks the source
for offsets, or writes the checkpoint.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from compat_tests.support.waiting import eventually

EVERY_S = 0.25
ATTACH_S = 5.0
DUMP = b"1\0threaddump\0\0\0\0"
TASK, QUERY = "Executor task launch worker", "stream execution thread"
JOB = "DAGScheduler.runJob"
FRAMES = 16
"""How far down a stack is looked for what the thread does now: below that is who asked for it."""
KINDS = (
    ("source", re.compile(r"kafka010|org\.apache\.kafka")),
    ("Python and its writers", re.compile(r"api\.python|execution\.python")),
    ("state", re.compile(r"rocksdb|streaming\.state")),
    ("Parquet", re.compile(r"org\.apache\.parquet|FileFormatDataWriter")),
    ("shuffle and sort", re.compile(r"shuffle|UnsafeExternal|util\.collection")),
    ("compilation", re.compile(r"janino|codegen\.CodeGenerator")),
)
OTHER = "expressions and the rest"
DRIVER = "the driver, between tasks"


def thread_dump(pid: int) -> str:
    """The stacks of a JVM of this user's; empty where it has ended, or does not respond."""
    path = Path(f"/tmp/.java_pid{pid}")
    with suppress(OSError, AssertionError):
        if not path.exists():
            _wake(pid, path)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ATTACH_S)
            connection.connect(str(path))
            connection.sendall(DUMP)
            parts = iter(lambda: connection.recv(1 << 16), b"")
            return b"".join(parts).decode(errors="replace")
    return ""


def _wake(pid: int, path: Path) -> None:
    """Have the JVM listen."""
    wish = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    wish.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        eventually(path.exists, "the JVM listens", ATTACH_S)
    finally:
        wish.unlink(missing_ok=True)


def kinds_of(dump: str) -> Iterator[str]:
    """What each thread of a task does; and, once, that no query has tasks now."""
    threads = dump.split("\n\n")
    for thread in (one for one in threads if TASK in one and "at org.apache.spark" in one):
        top = "\n".join(thread.splitlines()[:FRAMES])
        places = {kind: found.start() for kind, pattern in KINDS if (found := pattern.search(top))}
        yield min(places, key=lambda kind: places[kind], default=OTHER)
    if QUERY in dump and JOB not in dump:
        yield DRIVER


def jvms(pids: Sequence[int]) -> list[int]:
    """The JVMs below these processes."""
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(pid).children(recursive=True)
            found += [one.pid for one in below if one.name() == "java"]
    return found


@contextmanager
def profile(pids: Sequence[int], counts: Counter[str]) -> Iterator[None]:
    """Count into `counts` until the block ends."""
    ended = threading.Event()

    def sample() -> None:
        of = jvms(pids)
        while not ended.wait(EVERY_S):
            for pid in of:
                counts.update(kinds_of(thread_dump(pid)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def shares(counts: Counter[str]) -> str:
    """The largest first, as text."""
    total = counts.total() or 1
    return ", ".join(f"{kind} {count / total:.0%}" for kind, count in counts.most_common() if count / total >= 0.02)
