"""`Channel`: a worker as the registry sees it; `Forked` and `Spawned` make workers.

Linux and macOS fork them from a template. Windows has no fork and passes no sockets on: there each is started with its
imports, which takes half a second, and the registry ends it when its time is up.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final, Protocol

from kpybroker.registry.texts.frames import READY, Frame, read_frame, write_frame
from kpybroker.system import of_the_system

COMMAND: Final = [sys.executable, "-P", "-m", __name__.rpartition(".")[0]]
STARTS_MAX: Final = 3
CHANNEL_S_MAX: Final = 60.0
"""For a worker that neither replies nor ends, which its own timers should prevent."""
SPAWNED_FACTOR: Final = 3.0
"""Of the time of a text: without timers of the system, the registry's clock counts pauses too."""


class Channel:
    """`ask` is of one thread at a time."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes], end: Callable[[], None], *, is_timed: bool = True) -> None:
        self._reader = reader
        self._writer = writer
        self._is_timed = is_timed
        self.end = end
        """Ends the worker, if it has not ended."""

    def ask(self, content: bytes, cpu_s: float) -> Frame | None:
        """The reply; None where the worker ended over it."""
        timer = None
        if not self._is_timed:
            timer = threading.Timer(cpu_s * SPAWNED_FACTOR, self.end)
            timer.start()
        try:
            write_frame(self._writer, content, cpu_s)
            return read_frame(self._reader)
        except (OSError, ValueError):  # ended, or closed
            return None
        finally:
            if timer is not None:
                timer.cancel()

    def is_ready(self) -> bool:
        """Waits until the worker has begun; False if it ended."""
        with suppress(OSError, ValueError):
            frame = read_frame(self._reader)
            return frame is not None and frame.content == READY
        return False


class Workers(Protocol):
    """Makes workers."""

    def start(self) -> None:
        """Begin what takes time. Does not wait for it."""

    def make(self, number: int) -> Channel | None:
        """A worker that is ready; None if none can be. The worker with the same number has ended."""

    def close(self) -> None:
        """End whatever was started."""


def workers() -> Workers:
    """As this system can."""
    return Forked() if of_the_system(os, "fork") and of_the_system(socket, "send_fds") else Spawned()


class Forked:
    """Workers from a template, which is started again if it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the template."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        self._end()
        self._orders, theirs = socket.socketpair()
        with theirs:
            command = [*COMMAND, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def make(self, number: int) -> Channel | None:
        """See `Workers`."""
        send: Any = of_the_system(socket, "send_fds")
        for _ in range(STARTS_MAX):
            own, theirs = socket.socketpair()
            with self._lock, theirs:
                try:
                    if self._orders is None:
                        self._start()
                    assert self._orders is not None
                    send(self._orders, [bytes([number])], [theirs.fileno()])
                except OSError:
                    self._end()
            own.settimeout(CHANNEL_S_MAX)
            channel = Channel(own.makefile("rb"), own.makefile("wb"), partial(_close, own))
            if channel.is_ready():
                return channel
            channel.end()
            with self._lock:
                if self._process is not None and self._process.poll() is not None:
                    self._end()
        return None

    def _end(self) -> None:
        orders, process = self._orders, self._process
        self._orders = self._process = None
        if orders is not None:
            orders.close()
        if process is not None:
            process.wait()

    def close(self) -> None:
        """See `Workers`."""
        with self._lock:
            self._end()


def _close(channel: socket.socket) -> None:
    """Also for the files that were made of it."""
    with suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()


class Spawned:
    """Workers that are started one by one."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """There is nothing to begin."""

    def make(self, number: int) -> Channel | None:
        """See `Workers`."""
        process: Any = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with self._lock:
            before = self._processes.pop(number, None)
            self._processes[number] = process
        if before is not None:
            before.wait()
        channel = Channel(process.stdout, process.stdin, process.kill, is_timed=False)
        return channel if channel.is_ready() else None

    def close(self) -> None:
        """See `Workers`."""
        with self._lock:
            for process in self._processes.values():
                process.kill()
                process.wait()
            self._processes.clear()
