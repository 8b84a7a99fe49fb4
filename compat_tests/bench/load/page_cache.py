"""Logs made cold, and room on the disk: what the benches do to files."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import time
from pathlib import Path

WARM_SHARE_MAX = 0.01
TRIES, PAUSE_S = 5, 0.5


def drop(partition: Path) -> None:
    """Write the segments of a partition to disk and take them out of the page cache; fails when they stay there.

    Some stay for a moment: a core has them on its way to the lists of the cache, or they are still being written.
    """
    segments = sorted(partition.glob("*.log"))
    assert segments, f"{partition} has no segment"
    for number in range(TRIES):
        time.sleep(PAUSE_S * min(number, 1))
        pages, warm = (sum(counts) for counts in zip(*map(_drop, segments), strict=True))
        if warm <= pages * WARM_SHARE_MAX:
            return
    raise AssertionError(f"{warm} of {pages} pages of {partition} are still in the page cache")


def _drop(segment: Path) -> tuple[int, int]:
    """How many pages it has, and how many of these are still warm."""
    number = os.open(segment, os.O_RDWR)
    try:
        os.fdatasync(number)  # a dirty page cannot be dropped
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        return _residency(number)
    finally:
        os.close(number)


def _residency(number: int) -> tuple[int, int]:
    """By mincore, which reads nothing: preadv with RWF_NOWAIT shows it too, but makes the kernel read ahead."""
    size = os.fstat(number).st_size
    if size == 0:
        return 0, 0
    pages = -(-size // mmap.PAGESIZE)
    resident = (ctypes.c_ubyte * pages)()
    with mmap.mmap(number, size, access=mmap.ACCESS_COPY) as mapped:
        start = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.byref(start), ctypes.c_size_t(size), resident)
        del start  # a mapping that is referred to cannot be closed
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return pages, sum(page & 1 for page in resident)


def sync(partition: Path) -> None:
    """Write the segments to disk, so that their writing does not disturb what is measured next."""
    for segment in partition.glob("*.log"):
        number = os.open(segment, os.O_RDONLY)
        os.fdatasync(number)
        os.close(number)


def require_room(directory: Path, gigabytes: float) -> None:
    free = shutil.disk_usage(directory).free / 1e9
    if free < gigabytes:
        raise SystemExit(
            f"bench: this takes {gigabytes:.0f} GB of disk and {directory} has {free:.0f} GB; --dir names another place"
        )
