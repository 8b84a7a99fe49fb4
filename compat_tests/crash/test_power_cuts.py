"""Power cuts under load, two with each way to flush; `make power-cuts` makes a hundred, and takes a seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat_tests.crash.power_cuts import FLUSHES, NEEDS_ROOT, cut
from compat_tests.support.machine.loop_disk import MIB, LoopDisk, may_mount

CUTS = 2
OF_MAKE_TEST = "every-message"
"""The one that allows no loss at all."""


@pytest.fixture(autouse=True)
def possible(request: pytest.FixtureRequest) -> None:
    if not may_mount():
        pytest.skip(NEEDS_ROOT)
    if request.config.option.broker == "kafka":
        pytest.skip("Kafka serves the hole that a lost end leaves before a segment that survived")


@pytest.mark.parametrize(
    "flush", [pytest.param(flush, marks=[] if flush == OF_MAKE_TEST else pytest.mark.wide) for flush in FLUSHES]
)
def test_power_cuts(seed: int, flush: str, tmp_path: Path) -> None:
    assert cut(flush, CUTS, seed, tmp_path) == []


def test_a_cut_loses_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    """Else the tests above would show nothing."""
    disk = LoopDisk(tmp_path, 64 * MIB)
    disk.mount()
    try:
        for name in ("synced", "unsynced"):
            with (disk.path / name).open("wb") as file:
                file.write(b"x" * 10_000)
                if name == "synced":
                    file.flush()
                    os.fsync(file.fileno())
        disk.cut_power()
        with pytest.raises(OSError, match="Input/output error"):
            (disk.path / "after").touch()
        disk.unmount()
        disk.mount()
        assert (disk.path / "synced").read_bytes() == b"x" * 10_000
        unsynced = disk.path / "unsynced"
        assert not unsynced.exists() or not unsynced.read_bytes()
    finally:
        disk.close()
