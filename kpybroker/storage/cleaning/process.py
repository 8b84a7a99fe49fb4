"""The cleaner's process: `python -m kpybroker.storage.cleaning.process`, which the broker starts to clean a log, or to
read the timestamps of its records.

Stdin receives one job a line (JSON: its kind and fields, and `io_max_bytes_per_second`). Stdout gets one event a line:
the steps of `cleaner.clean`, or Timestamps; then the next job may follow. A job that fails ends with a Failed event.
Any input during a job, including the end of stdin, ends the process at once: the broker is gone, or no longer wants
the result.

It is niced, leaves interrupts to the broker, and imports no more than it needs.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import BinaryIO, NamedTuple

from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, CleaningJob, Mapped, Tick, clean
from kpybroker.storage.cleaning.timestamps import Timestamps, TimestampsJob, read_timestamps
from kpybroker.storage.disk.errors import is_disk_full
from kpybroker.storage.disk.files import Files
from kpybroker.storage.disk.local_files import local_files
from kpybroker.system.processes import lower_priority

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


Job = CleaningJob | TimestampsJob
JOBS: dict[str, type[Job]] = {kind.__name__: kind for kind in (CleaningJob, TimestampsJob)}
Event = Mapped | CleanedSegment | Cleaned | Timestamps | Failed
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Mapped, CleanedSegment, Cleaned, Timestamps, Failed)}
LAST_EVENTS = (Cleaned, Timestamps, Failed)
"""One of them ends each job."""


def encode_event(event: Event) -> bytes:
    """One line of stdout."""
    return json.dumps([type(event).__name__, *event]).encode() + b"\n"


def decode_event(line: bytes) -> Event:
    """The event in one line of stdout."""
    kind, *fields = json.loads(line)
    return EVENTS[kind](*fields)


def encode_job(job: Job, io_max_bytes_per_second: float) -> bytes:
    """One line of stdin."""
    fields = {name: getattr(job, name) for name in job.__slots__}
    return json.dumps([type(job).__name__, fields, io_max_bytes_per_second]).encode() + b"\n"


def decode_job(line: bytes) -> tuple[Job, float]:
    """The job and its rate in bytes per second, from one line of stdin."""
    kind, fields, rate = json.loads(line)
    return JOBS[kind](**fields), rate


class Unwanted(SystemExit):
    """Input on stdin during a job, which ends the process."""


class Input:
    """A pipe, read by a thread of its own: not every system can tell whether a pipe has something to read."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._changed = threading.Condition()
        self._received = bytearray()
        self._has_ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            data = os.read(self._fd, 65536)
            with self._changed:
                self._received += data
                self._has_ended = not data
                self._changed.notify()
                if not data:
                    return

    def next_line(self) -> bytes:
        """Wait for a line; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or b"\n" in self._received)
            line, newline, rest = self._received.partition(b"\n")
            self._received = rest
            return bytes(line + newline)

    def comes_within(self, seconds: float) -> bool:
        """Whether anything, also the end, is there or arrives in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._has_ended or bool(self._received), seconds)


class Throttle:
    """Keeps reading and writing at a rate, and watches the input at the same time."""

    def __init__(self, bytes_per_second: float, jobs: Input) -> None:
        self._rate = bytes_per_second
        self._jobs = jobs
        self._since = time.monotonic()
        self._bytes = 0

    def __call__(self, size: int) -> None:
        self._bytes += size
        elapsed = time.monotonic() - self._since
        ahead_s = self._bytes / self._rate - elapsed
        if self._jobs.comes_within(max(ahead_s, 0.0)):
            raise Unwanted(0)
        if elapsed > WINDOW_S:
            self._since, self._bytes = time.monotonic(), 0


def run_job(files: Files, job: Job, tick: Tick, output: BinaryIO) -> None:
    """Write the events of one job; the last one says how it ended."""

    def write(event: Event) -> None:
        output.write(encode_event(event))
        output.flush()

    try:
        if isinstance(job, TimestampsJob):
            write(read_timestamps(files, job, tick))
            return
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
    lower_priority(NICENESS)
    files, jobs = local_files(), Input(sys.stdin.fileno())
    while line := jobs.next_line():
        job, rate = decode_job(line)
        run_job(files, job, Throttle(rate, jobs), sys.stdout.buffer)


if __name__ == "__main__":
    main()
