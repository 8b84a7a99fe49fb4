"""Windows' rules for files, on Linux: what a process has open is neither renamed nor removed.

`enforce` applies them to every call that code of kpybroker makes, in this process and its children's files too: a
cleaner's process has files of its own open. Windows raises PermissionError there, and so does this. Other code (pytest,
tempfile) is not affected.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

OTHERS_S_MAX = 0.5
"""How long a child process may have a file open that this process renames: `system.files.replace` tries so long."""
_NAMES = ("replace", "rename", "unlink", "remove")


def enforce() -> Callable[[], None]:
    """From now on; returns what ends it."""
    real = {name: getattr(os, name) for name in _NAMES}
    for name, function in real.items():
        setattr(os, name, _checked(function))

    def end() -> None:
        for name, function in real.items():
            setattr(os, name, function)

    return end


@contextmanager
def enforced() -> Iterator[None]:
    """For the length of a block."""
    end = enforce()
    try:
        yield
    finally:
        end()


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*paths: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("kpybroker.") and os.path.lexists(paths[0]):
            for path in paths:
                _require_closed(os.path.realpath(path))
        return function(*paths, **options)

    return call


def _require_closed(path: str) -> None:
    end = time.monotonic() + OTHERS_S_MAX
    while True:
        if _has_open(os.getpid(), path):
            raise PermissionError(errno.EACCES, "this process has it open", path)
        if not any(_has_open(child, path) for child in _children()):
            return
        if time.monotonic() > end:
            raise PermissionError(errno.EACCES, "another process has it open", path)
        time.sleep(0.01)


def _has_open(process: int, path: str) -> bool:
    """Whether a descriptor of the process is of this file, or of one in this directory."""
    directory = f"/proc/{process}/fd"
    try:
        descriptors = os.listdir(directory)
    except OSError:  # it has ended
        return False
    for descriptor in descriptors:
        try:
            target = os.readlink(f"{directory}/{descriptor}")
        except OSError:
            continue
        if target == path or target.startswith(path + "/"):
            return True
    return False


def _children() -> list[int]:
    found: list[int] = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as children:
                found += map(int, children.read().split())
        except OSError:
            continue
    return found
