"""Files and directories that only this user may read."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kpybroker.system import of_the_system
from kpybroker.system.files import belongs_to_this_user

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700
"""Modes of what only this user may read. Windows has no modes: there the directory above decides."""
_OTHERS, _OTHERS_ENTER, _OTHERS_WRITE = 0o077, 0o011, 0o022


def make_private_directory(path: str) -> None:
    """Create a directory that only this user may enter, and its parents as usual, unless it exists. Raises OSError."""
    os.makedirs(path, PRIVATE_DIRECTORY, exist_ok=True)


def take_directory(path: str) -> None:
    """As `make_private_directory`; one that exists must be this user's, with what is in it, and for it alone to write.

    For names that are made up and not given: another user may have made it first. Raises OSError.
    """
    make_private_directory(path)
    if sys.platform == "win32":
        return
    with os.scandir(path) as entries:
        inside = [(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, found in ((path, os.lstat(path)), (path, os.stat(path)), *inside):
        if not belongs_to_this_user(found):
            raise PermissionError(errno.EPERM, "it belongs to another user", name)
        if found.st_mode & _OTHERS_WRITE and not stat.S_ISLNK(found.st_mode):
            raise PermissionError(errno.EPERM, "other users may write to it", name)


def shown_to_others(path: str) -> int:
    """The mode of a file or directory that other users of the machine may read or change.

    0 where they cannot, since a directory above is closed to them too, and for what cannot be examined.
    """
    if sys.platform == "win32":
        return 0
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        above = os.path.dirname(os.path.realpath(path)) if mode & _OTHERS else ""
        while above:
            if not os.stat(above).st_mode & _OTHERS_ENTER:
                return 0
            if os.path.dirname(above) == above:
                return mode
            above = os.path.dirname(above)
    except OSError:
        return 0
    return 0


@contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes, for libraries that read secrets from files alone.

    On Linux it is in memory and has no name in any directory. Elsewhere it is in a directory of this user's, while
    the block runs.
    """
    memfd_create = of_the_system(os, "memfd_create")
    if memfd_create is None:
        import tempfile  # not needed by most starts

        with tempfile.TemporaryDirectory(prefix="kpybroker-") as directory:  # its mode is 0700
            path = os.path.join(directory, "private")
            with open(path, "wb") as file:
                file.write(data)
            yield path
        return
    descriptor = memfd_create("private")  # closed in the programs that this one starts: the default
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
