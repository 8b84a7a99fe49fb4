"""Ending with another process: a broker that a test started must not outlive it, however that ends.

A thread watches, so that it works also while the loop is stuck.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Final

STOP_S_MAX: Final = 5.0
LOOK_EVERY_S: Final = 0.5
EXIT_CODE: Final = 1


def exit_with(pid: int, stop: Callable[[], object], last_resort: Callable[[], object]) -> None:
    """Call `stop` in a thread once the process has ended; if this one is still there after `STOP_S_MAX`, call
    `last_resort` and end it at once."""

    def watch() -> None:
        _wait_for_end(pid)
        stop()
        time.sleep(STOP_S_MAX)
        last_resort()
        os._exit(EXIT_CODE)

    threading.Thread(target=watch, name="exit-with", daemon=True).start()


def _wait_for_end(pid: int) -> None:
    """Return once the process has ended. A process that is not ours to see counts as one that has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # another system, or a kernel before 5.3
        _look_for_end(pid)
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
    os.close(descriptor)


def _look_for_end(pid: int) -> None:
    """As `_wait_for_end`, for the parent process only on Windows."""
    is_child = os.getppid() == pid
    while _exists(pid) and (not is_child or os.getppid() == pid):
        time.sleep(LOOK_EVERY_S)


def _exists(pid: int) -> bool:
    if os.name == "nt":  # os.kill would end it
        return os.getppid() == pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
