"""What to do about a failed log directory depends on what failed: not every error is the disk's."""

from __future__ import annotations

import errno
import os

import pytest

from kpybroker.storage.disk.errors import LogDirError


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.EMFILE, "raise the limit of open files"),
        (errno.ENFILE, "raise the limit of open files"),
        (errno.EACCES, "right to write"),
        (errno.EROFS, "mount the file system for writing"),
        (errno.EIO, "repair or replace the disk"),
    ],
)
def test_the_fix_is_for_what_failed(number: int, fix: str) -> None:
    error = LogDirError("/logs", OSError(number, os.strerror(number), "/logs/t-0/0.log"))
    assert fix in error.fix
    assert error.fix.endswith(", then start again")


def test_a_cause_in_words_is_the_disk_s() -> None:
    assert LogDirError("/logs", "taken away").fix == "repair or replace the disk, then start again"
