"""What the JVM of Spark writes to its standard error: of each event one line is shown, the rest is kept.

Spark logs an error with the stack of its threads, in hundreds of lines, and the run says in two what is to be done. So
the stack is shown only where the run does not know the error. Until Spark has started nothing is shown but what is
downloaded: those lines explain a start that fails.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

KEPT_LINES_MAX = 2000
_EVENT = re.compile(r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d (ERROR|FATAL) ")
_DOWNLOAD = re.compile(r"downloading http")
_STDERR = 2


class Messages:
    """The last lines that a JVM has written, `out` being where some of them are shown."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lines: deque[str] = deque(maxlen=KEPT_LINES_MAX)
        self._started = False
        self._reader: threading.Thread | None = None

    @contextmanager
    def of_a_start(self) -> Iterator[None]:
        """In this block a JVM is started, whose standard error is read from then on."""
        reading, writing = os.pipe()
        sys.stderr.flush()
        before = os.dup(_STDERR)
        os.dup2(writing, _STDERR)
        os.close(writing)
        self._reader = threading.Thread(target=self._read, args=(reading,), daemon=True)
        self._reader.start()
        try:
            yield
            self._started = True
        finally:
            os.dup2(before, _STDERR)
            os.close(before)

    def text(self) -> str:
        """What was kept, of a JVM that has ended all of it."""
        return "\n".join(self._lines)

    def wait(self, seconds: float) -> None:
        """Wait until the JVM has ended, which closes its end, but no longer than that."""
        if self._reader is not None:
            self._reader.join(seconds)

    def _read(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                self._lines.append(line.rstrip("\n"))
                if (_EVENT if self._started else _DOWNLOAD).match(line):
                    print(line.rstrip("\n"), file=self._out, flush=True)
