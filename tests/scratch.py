"""Where the files of a run are: in memory, where there is room.

Brokers of tests sync tens of thousands of small files, which takes a disk minutes, and no file outlives its run. A run
that passes removes its folder; what another one leaves is there to be looked at, until the next run begins.
`TMPDIR=/tmp make test` has the files on a disk.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NAME = "kpybroker-tests-"
BYTES_MIN = 8 << 30
"""As much must be free there. A run with five workers had 1.4 GiB there when it was looked at."""
AVAILABLE_MIN = 12 << 30
"""Of the machine's memory: brokers and JVMs need the rest."""


def available_bytes(meminfo: str) -> int:
    """What Linux says is available."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def has_room(memory: Path = MEMORY, meminfo: Path = Path("/proc/meminfo")) -> bool:
    """Whether the files of a run fit into memory, next to its processes."""
    return (
        memory.is_dir()
        and shutil.disk_usage(memory).free >= BYTES_MIN
        and available_bytes(meminfo.read_text()) >= AVAILABLE_MIN
    )


def remove_left(memory: Path) -> None:
    """Remove what runs left that have ended."""
    for folder in memory.glob(f"{NAME}*"):
        if not Path("/proc", folder.name.removeprefix(NAME)).exists():
            shutil.rmtree(folder, ignore_errors=True)


def begin(memory: Path = MEMORY) -> Path:
    """Make the folder of this process's run; its temporary files, and those of processes that it starts, go there."""
    remove_left(memory)
    folder = memory / f"{NAME}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    return folder
