"""The process that compacts logs, replaced: a job is done at one moment of simulated time, as by a process that works
ahead, and its events are read later. Sometimes it dies in the middle of a job, and leaves its files behind.
"""

from __future__ import annotations

import io
from collections import deque
from contextvars import ContextVar

from kpybroker.storage.cleaning.process import LAST_EVENTS, Event, decode_event, decode_job, run_job
from kpybroker.storage.disk.files import Files
from tests.simulation.seams.work import SimulatedWork

FILES: ContextVar[Files] = ContextVar("FILES")
"""Those of the host, in all tasks of a broker."""
DIES = 0.03
"""Odds of a job's process."""
TICKS_MAX = 20


class _Died(SystemExit):
    """Passes through what handles errors."""


class SimulatedCleaner:
    """As `CleanerProcess`."""

    def __init__(self, work: SimulatedWork) -> None:
        self._work = work
        self._files = FILES.get()
        self._events: deque[Event] = deque()
        self._ticks_left: int | None = None
        self._has_started = self._is_killed = self._is_working = False

    @property
    def is_idle(self) -> bool:
        """As `CleanerProcess.is_idle`."""
        return not (self._is_killed or self._is_working)

    async def start(self) -> None:
        """As `CleanerProcess.start`."""
        self._has_started = True
        await self._work.run_sync(int)

    async def send(self, line: bytes) -> None:
        """As `CleanerProcess.send`."""
        self._is_working = True
        await self._work.run_sync(self._do, line)

    def _do(self, line: bytes) -> None:
        if self._is_killed:
            return
        job, _ = decode_job(line)
        output = io.BytesIO()
        self._ticks_left = self._work.chance.randint(1, TICKS_MAX) if self._work.chance.random() < DIES else None
        try:
            run_job(self._files, job, self._tick, output)
        except _Died:
            pass
        self._events.extend(decode_event(event) for event in output.getvalue().splitlines(keepends=True))

    def _tick(self, size: int) -> None:
        if self._ticks_left is not None:
            self._ticks_left -= 1
            if not self._ticks_left:
                raise _Died

    async def receive(self) -> Event | None:
        """As `CleanerProcess.receive`."""
        await self._work.run_sync(int)
        if not self._events:
            return None
        event = self._events.popleft()
        if isinstance(event, LAST_EVENTS):
            self._is_working = False
        return event

    def kill(self) -> None:
        """As `CleanerProcess.kill`."""
        self._is_killed = True

    async def close(self) -> int | None:
        """As `CleanerProcess.close`."""
        if not self._has_started:
            return None
        self.kill()
        await self._work.run_sync(int)
        return -9
