"""Logs made cold, and room on the disk: what the benches do to files."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

WARM_SHARE_MAX = 0.01
PROBE_EVERY_BYTES = 256 << 10
TRIES, PAUSE_S = 5, 0.5


def drop(partition: Path) -> None:
    """Write the segments of a partition to disk and take them out of the page cache; fails when they stay there.

    Some stay for a moment: a core has them on its way to the lists of the cache, or they are still being written.
    """
    for number in range(TRIES):
        time.sleep(PAUSE_S * min(number, 1))
        probes, warm = _drop(partition)
        assert probes, f"{partition} has no segment"
        if warm <= probes * WARM_SHARE_MAX:
            return
    raise AssertionError(f"{warm} of {probes} places in {partition} are still in the page cache")


def _drop(partition: Path) -> tuple[int, int]:
    """How many places were looked at afterwards, and how many of these are warm."""
    probes = warm = 0
    for segment in partition.glob("*.log"):
        number = os.open(segment, os.O_RDONLY)
        try:
            os.fdatasync(number)  # a dirty page cannot be dropped
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
            offsets = range(0, os.fstat(number).st_size, PROBE_EVERY_BYTES)
            probes += len(offsets)
            warm += sum(_is_warm(number, offset) for offset in offsets)
        finally:
            os.close(number)
    return probes, warm


def sync(partition: Path) -> None:
    """Write the segments to disk, so that their writing does not disturb what is measured next."""
    for segment in partition.glob("*.log"):
        number = os.open(segment, os.O_RDONLY)
        os.fdatasync(number)
        os.close(number)


def _is_warm(number: int, offset: int) -> bool:
    """RWF_NOWAIT reads what is in the page cache, and nothing else."""
    try:
        os.preadv(number, [bytearray(1)], offset, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    return True


def require_room(directory: Path, gigabytes: float) -> None:
    free = shutil.disk_usage(directory).free / 1e9
    if free < gigabytes:
        raise SystemExit(
            f"bench: this takes {gigabytes:.0f} GB of disk and {directory} has {free:.0f} GB; --dir names another place"
        )
