"""The cleaner's process: `python -m kpybroker.storage.cleaning.process`, which the broker starts to clean a log.

Stdin receives one job a line (JSON: the fields of CleaningJob and `io_max_bytes_per_second`). Stdout gets one event a
line: the steps of `cleaner.clean`; then the next job may follow. A job that fails ends with a Failed event. Any input
during a job, including the end of stdin, ends the process at once: the broker is gone, or no longer wants the result.

It is niced, leaves interrupts to the broker, and imports no more than it needs.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
import time
import traceback
from typing import Any, BinaryIO, NamedTuple

from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, CleaningJob, Mapped, Tick, clean
from kpybroker.storage.disk.errors import is_disk_full
from kpybroker.storage.disk.files import Files, OsFiles

NICENESS = 10
WINDOW_S = 0.3  # over which the rate is held, as in Kafka's Throttler

NO_SPACE = "no-space"
IO_ERROR = "io"
OTHER = "other"
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Failed(NamedTuple):
    """The job failed. `kind`: NO_SPACE may be tried again, IO_ERROR is of the disk, OTHER of the log."""

    kind: str
    message: str
    details: str


Event = Mapped | CleanedSegment | Cleaned | Failed
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Mapped, CleanedSegment, Cleaned, Failed)}


def encode_event(event: Event) -> bytes:
    """One line of stdout."""
    return json.dumps([type(event).__name__, *event]).encode() + b"\n"


def decode_event(line: bytes) -> Event:
    """The event in one line of stdout."""
    kind, *fields = json.loads(line)
    return EVENTS[kind](*fields)


def encode_job(job: CleaningJob, io_max_bytes_per_second: float) -> bytes:
    """One line of stdin."""
    fields = {name: getattr(job, name) for name in CleaningJob.__slots__}
    return json.dumps([fields, io_max_bytes_per_second]).encode() + b"\n"


def decode_job(line: bytes) -> tuple[CleaningJob, float]:
    """The job and its rate in bytes per second, from one line of stdin."""
    fields, rate = json.loads(line)
    return CleaningJob(**fields), rate


class Unwanted(SystemExit):
    """Input on stdin during a job, which ends the process."""


class Throttle:
    """Keeps reading and writing at a rate, and watches stdin meanwhile."""

    def __init__(self, bytes_per_second: float, stdin: Any) -> None:
        self._rate = bytes_per_second
        self._stdin = stdin
        self._since = time.monotonic()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        elapsed = time.monotonic() - self._since
        ahead_s = self._bytes / self._rate - elapsed
        if select.select([self._stdin], [], [], max(ahead_s, 0.0))[0]:
            raise Unwanted(0)
        if elapsed > WINDOW_S:
            self._since, self._bytes = time.monotonic(), 0


def run_job(files: Files, job: CleaningJob, tick: Tick, output: BinaryIO) -> None:
    """Write the events of one job; the last one says how it ended."""

    def write(event: Event) -> None:
        output.write(encode_event(event))
        output.flush()

    try:
        for event in clean(files, job, tick):
            write(event)
    except OSError as error:
        kind = NO_SPACE if is_disk_full(error) or error.errno in _PASSING else IO_ERROR
        write(Failed(kind, str(error), traceback.format_exc()))
    except Exception as error:
        write(Failed(OTHER, str(error), traceback.format_exc()))


def main() -> None:
    """Run the jobs of stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    files = OsFiles()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while line := stdin.readline():
        job, rate = decode_job(line)
        run_job(files, job, Throttle(rate, stdin), stdout)


if __name__ == "__main__":
    main()
