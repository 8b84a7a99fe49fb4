"""JSONPath filters, evaluated by processes that can be ended: a short path may have no end (`$..[?$..[?$..[?@.zz]]]`).

One record has RECORD_S_MAX, and WORKERS_MAX records are evaluated at once. A filter that takes longer is an error of
its page, and no other page notices it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError

RECORD_S_MAX: Final = 2.0
START_S_MAX: Final = 20.0
"""Of a process, on a machine that is busy."""
WAIT_S_MAX: Final = 1.0
"""For another record's evaluation."""
WORKERS_MAX: Final = 4
IDLE_MAX: Final = 2
"""Processes that wait for the next filter."""
COMMAND: Final = "from kpybroker.console.queries.outside.json_filter_worker import main; main()"
WARM_UP: Final = ("$", None)

_places = threading.BoundedSemaphore(WORKERS_MAX)
_idle: list[_Worker] = []
_lock = threading.Lock()


class _Worker:
    """A process; it is ended when it does not respond in time."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-c", COMMAND]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.matches(*WARM_UP, START_S_MAX)

    def matches(self, path: str, value: Any, seconds: float) -> bool:
        """Whether the path finds anything in the value. Raises CommandError, and is then of no further use."""
        assert self._process.stdin is not None, "it is a pipe"
        assert self._process.stdout is not None, "it is a pipe"
        line = json.dumps([path, value]).encode() + b"\n"
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            verdict = self._process.stdout.readline()
        except OSError:
            verdict = b""
        finally:
            timer.cancel()
        if not verdict:
            self.close()
            cause = f"the JSON filter needs more than {RECORD_S_MAX:g} seconds, or too much memory, for one message"
            raise CommandError(cause, "write a path without .. in a filter, such as $.items[0].sku or @.total > 5", 2)
        return verdict == b"1\n"

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None, "it is a pipe"
            try:
                pipe.close()
            except OSError:  # what was not written
                continue


def matches(path: str, value: Any) -> bool:
    """Whether the path finds anything in the value. Raises CommandError if that takes too long."""
    if not _places.acquire(timeout=WAIT_S_MAX):
        raise CommandError(f"{WORKERS_MAX} JSON filters are at work", "load the page again in a few seconds")
    try:
        worker = _taken() or _Worker()
        found = worker.matches(path, value, RECORD_S_MAX)
        _give_back(worker)
        return found
    finally:
        _places.release()


def _taken() -> _Worker | None:
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.is_alive:
                return worker
            worker.close()
        return None


def _give_back(worker: _Worker) -> None:
    with _lock:
        if len(_idle) < IDLE_MAX:
            _idle.append(worker)
            return
    worker.close()
