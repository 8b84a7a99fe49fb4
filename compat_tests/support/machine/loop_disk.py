"""A disk of its own for a broker: ext4 in a file, mounted through a loop device. It can lose its power.

Only root may mount. `cut_power` is what the kernel has for testing file systems (FS_IOC_SHUTDOWN without a flush of the
journal): from then on every call returns EIO, and what was not synced is as likely to be lost as after a power cut;
the next `mount` replays the journal as after one.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from compat_tests.support.waiting import eventually

MIB = 1024 * 1024

FS_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NO_LOG_FLUSH = struct.pack("=I", 2)
UNMOUNT_DEADLINE_S = 20.0


@cache
def may_mount() -> bool:
    """Tried, for root in a container often may not, or has no loop devices."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as directory:
        try:
            disk = LoopDisk(Path(directory), 8 * MIB)
            disk.mount()
        except (AssertionError, FileNotFoundError):
            return False
        disk.close()
    return True


class LoopDisk:
    """`size` bytes at `path`, once it is mounted."""

    def __init__(self, directory: Path, size: int) -> None:
        self.path = directory / "disk"
        self.path.mkdir(parents=True)
        self._image = directory / "disk.ext4"
        self._image.touch()
        os.truncate(self._image, size)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))

    @property
    def is_mounted(self) -> bool:
        return os.path.ismount(self.path)

    def mount(self, options: str = "defaults") -> None:
        _run("mount", "-t", "ext4", "-o", f"loop,{options}", str(self._image), str(self.path))

    def cut_power(self) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, FS_IOC_SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(fd)

    def unmount(self) -> None:
        """A process that was killed may hold files for a moment."""
        command = ["umount", str(self.path)]
        eventually(lambda: subprocess.run(command, capture_output=True).returncode == 0, "umount", UNMOUNT_DEADLINE_S)

    def close(self) -> None:
        if self.is_mounted:
            self.unmount()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
