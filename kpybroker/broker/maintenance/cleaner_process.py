"""A process that does one job on a log after the other (`storage.cleaning.process`), as the broker sees it."""

from __future__ import annotations

import contextlib
import sys
from subprocess import PIPE

import trio

from kpybroker.storage.cleaning.process import LAST_EVENTS, Event, decode_event
from kpybroker.system.processes import OWN_SESSION

COMMAND = (sys.executable, "-m", "kpybroker.storage.cleaning.process")


class CleanerProcess:
    """Started by the first job, ended by `close`. It does one job at a time."""

    def __init__(self) -> None:
        self._process: trio.Process | None = None
        self._received = bytearray()
        self._is_killed = False
        self._is_working = False

    @property
    def is_idle(self) -> bool:
        """Whether it can take another job."""
        return not (self._is_killed or self._is_working)

    async def start(self) -> None:
        """Start the process unless it runs. Raises OSError."""
        if self._process is None:
            self._process = await trio.lowlevel.open_process(COMMAND, stdin=PIPE, stdout=PIPE, **OWN_SESSION)

    async def send(self, line: bytes) -> None:
        """Send a job. `receive` reports its result, and the end of the process if it is gone."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        self._is_working = True
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await process.stdin.send_all(line)

    async def receive(self) -> Event | None:
        """The next event; None when the process has ended."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while (end := self._received.find(b"\n")) < 0:
            chunk = await process.stdout.receive_some()
            if not chunk:
                return None
            self._received += chunk
        event = decode_event(bytes(self._received[:end]))
        del self._received[: end + 1]
        if isinstance(event, LAST_EVENTS):
            self._is_working = False
        return event

    def kill(self) -> None:
        """Cancel its job, if it has one, by killing it. Returns at once."""
        self._is_killed = True
        if self._process is not None:
            self._process.kill()

    async def close(self) -> int | None:
        """Kill it, wait until it has ended, and return its exit code; None if it was never started."""
        process = self._process
        if process is None:
            return None
        self.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()
        return process.returncode
