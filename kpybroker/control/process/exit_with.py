"""Ending with another process: a broker that a test started must not outlive it, however that ends.

A thread watches, so that it works also while the loop is stuck.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from kpybroker.system.processes import wait_for_end_of

STOP_S_MAX: Final = 5.0
EXIT_CODE: Final = 1


def exit_with(pid: int, stop: Callable[[], object], last_resort: Callable[[], object]) -> None:
    """Call `stop` in a thread once the process has ended; if this one is still there after `STOP_S_MAX`, call
    `last_resort` and end it at once."""
    exit_after(partial(wait_for_end_of, pid), stop, last_resort)


def exit_after(wait: Callable[[], object], stop: Callable[[], object], last_resort: Callable[[], object]) -> None:
    """The same once `wait`, called in the thread, has returned."""

    def watch() -> None:
        wait()
        stop()
        time.sleep(STOP_S_MAX)
        last_resort()
        os._exit(EXIT_CODE)

    threading.Thread(target=watch, name="exit-with", daemon=True).start()
