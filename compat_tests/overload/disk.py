"""A small disk that can be filled and grown: a tmpfs of its own, or where one may not mount, a limit on file size.

With the limit, what fills up is each file and not the disk, and the errno is EFBIG; a broker owes the same to both.
"""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import psutil

MIB = 1024 * 1024


class SmallDisk:
    """`size` bytes at `path`; `apply` once the broker runs, `grow` later, `close` when it has ended."""

    def __init__(self, path: Path, size: int) -> None:
        path.mkdir(parents=True)
        self.path = path
        self.size = size
        self._pid = 0
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
        self.is_mounted = subprocess.run(command, capture_output=True).returncode == 0

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

    def grow(self, size: int) -> None:
        if self.is_mounted:
            subprocess.run(["mount", "-o", f"remount,size={size}", str(self.path)], check=True)
        else:
            self._limit(size)

    def _limit(self, size: int) -> None:
        _, most = psutil.Process(self._pid).rlimit(psutil.RLIMIT_FSIZE)
        psutil.Process(self._pid).rlimit(psutil.RLIMIT_FSIZE, (size, most))

    def close(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.path)], check=True)
