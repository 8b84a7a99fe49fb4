"""Processes that stand still: SIGSTOP comes to one thread, and the others go on for a moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.programs.leftovers import eventually


def freeze(pid: int) -> None:
    """Let it stand still; a thread that waits for a disk does so at the end of its call only."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: _stands_still(pid), f"process {pid} goes on after SIGSTOP")


def thaw(pid: int) -> None:
    """SIGCONT."""
    os.kill(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    try:
        states = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):  # a thread has just ended
        return False
    return all(state.rpartition(")")[2].split()[0] == "T" for state in states)
