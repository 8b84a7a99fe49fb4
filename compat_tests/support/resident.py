"""A JVM that runs Kafka's tools one after the other, so that not each of them pays for a start: `ResidentTools.java`.

One a worker of pytest and Kafka version, started by the first tool and ended with the worker. A tool that does not end
in time, or that leaves threads behind, ends its JVM; the next tool starts another.
"""

from __future__ import annotations

import atexit
import os
import select
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

CHANGES_BY_TEST = "PYTEST_CURRENT_TEST"


class Outcome(NamedTuple):
    """Of a tool, as far as it came if `is_late`."""

    code: int
    out: bytes
    err: bytes
    is_late: bool = False


class Resident:
    """One tool at a time; `command` starts the JVM, and is asked for when the first tool runs."""

    def __init__(self, command: Callable[[], list[str]]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._started_in: object = None
        self._busy = threading.Lock()
        atexit.register(self.end)

    def run(self, main: str, arguments: list[str], stdin: bytes, deadline_s: float) -> Outcome | None:
        """Run a main class to its end. None if this is running another, in another thread."""
        if not self._busy.acquire(blocking=False):
            return None
        try:
            return self._run(main, arguments, stdin, time.monotonic() + deadline_s)
        except BaseException:
            self.end()
            raise
        finally:
            self._busy.release()

    def end(self) -> None:
        """End the JVM, and the tool that it runs."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def _run(self, main: str, arguments: list[str], stdin: bytes, end: float) -> Outcome:
        process = self._started()
        assert process.stdin is not None
        count = struct.pack(">i", len(arguments))
        request = [_text(main), count, *map(_text, arguments), _sized(stdin)]
        written = {b"o": bytearray(), b"e": bytearray()}  # a message of 50 MB comes in thousands of frames
        try:
            process.stdin.write(b"".join(request))
            process.stdin.flush()
            while (frame := self._frame(process, end))[0] != b"x":
                written[frame[0]] += frame[1]
        except TimeoutError:
            self.end()
            return Outcome(-1, bytes(written[b"o"]), bytes(written[b"e"]), True)
        except (EOFError, BrokenPipeError):  # by System.exit, or it crashed
            code = process.wait()
            self.end()
            return Outcome(code, bytes(written[b"o"]), bytes(written[b"e"]))
        code, stays = frame[1]
        if not stays:
            self.end()
        return Outcome(code, bytes(written[b"o"]), bytes(written[b"e"]))

    def _started(self) -> subprocess.Popen[bytes]:
        """A tool reads the environment and the directory of its process: they must be those of this one."""
        now = {key: value for key, value in os.environ.items() if key != CHANGES_BY_TEST}, os.getcwd()
        if self._process is not None and (now != self._started_in or self._process.poll() is not None):
            self.end()
        if self._process is None:
            self._process = subprocess.Popen(self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._started_in = now
        return self._process

    def _frame(self, process: subprocess.Popen[bytes], end: float) -> tuple[bytes, bytes]:
        kind, size = struct.unpack(">ci", self._read(process, 5, end))
        return kind, self._read(process, size, end)

    def _read(self, process: subprocess.Popen[bytes], size: int, end: float) -> bytes:
        """Read exactly so much. Raises TimeoutError or EOFError."""
        assert process.stdout is not None
        source = process.stdout.fileno()
        poll = select.poll()
        poll.register(source, select.POLLIN)
        data = bytearray()
        while len(data) < size:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise TimeoutError
            more = os.read(source, size - len(data))
            if not more:
                raise EOFError
            data += more
        return bytes(data)


def _sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _text(text: str) -> bytes:
    return _sized(text.encode())
