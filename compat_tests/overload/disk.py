"""A small disk that can be filled and grown: an ext4 of its own, or where one may not mount, a limit on file size.

With the limit, what fills up is each file and not the disk, and the errno is EFBIG; a broker owes the same to both.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import psutil

from compat_tests.support.machine.loop_disk import LoopDisk, may_mount


class SmallDisk:
    """`size` bytes at `path`; `apply` once the broker runs, later `grow` to `grown_size`, `close` when it has ended."""

    def __init__(self, directory: Path, size: int, grown_size: int) -> None:
        self.size = size
        self._grown_size = grown_size
        self._pid = 0
        self._disk = LoopDisk(directory, grown_size) if may_mount() else None
        self.path = directory
        if self._disk is None:
            directory.mkdir()
        else:
            self.path = self._disk.path
            self._disk.mount()
            with (self.path / "ballast").open("wb") as ballast:
                os.posix_fallocate(ballast.fileno(), 0, grown_size - size)

    @property
    def is_mounted(self) -> bool:
        return self._disk is not None

    def apply(self, pid: int) -> None:
        self._pid = pid
        if not self.is_mounted:
            self._limit(self.size)

    def fill(self) -> None:
        """Take what is left, to the last byte; where only files are limited, each is as full as it may be anyway."""
        if not self.is_mounted:
            return
        with (self.path / "filler").open("wb", buffering=0) as filler:
            for piece in (1 << 16, 1 << 12, 1):
                try:
                    while filler.write(bytes(piece)):
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def grow(self) -> None:
        if self._disk is not None:
            (self.path / "ballast").unlink()
        else:
            self._limit(self._grown_size)

    def _limit(self, size: int) -> None:
        _, most = psutil.Process(self._pid).rlimit(psutil.RLIMIT_FSIZE)
        psutil.Process(self._pid).rlimit(psutil.RLIMIT_FSIZE, (size, most))

    def close(self) -> None:
        if self._disk is not None:
            self._disk.close()
