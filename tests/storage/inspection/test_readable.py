"""What stands in the place of a file of a log is not waited for, and hides nothing around it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.inspection.dump import check_path, dump
from kpybroker.storage.inspection.dump_segment import Selection
from kpybroker.storage.inspection.readable import open_file
from kpybroker.storage.inspection.verify import ERROR, Totals, verify
from tests.support.storage.log_dir import make_log_dir

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the named pipes of POSIX")


def make_socket(path: Path) -> None:
    """A name that is short enough for a socket's address."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


ODD: dict[str, Callable[[Path], None]] = {"pipe": os.mkfifo, "socket": make_socket, "directory": Path.mkdir}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_log_dir(local_files(), str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", ODD)
def test_it_is_no_file(tmp_path: Path, kind: str) -> None:
    ODD[kind](tmp_path / "0.log")
    with pytest.raises(OSError, match=r"\[Errno"):
        open_file(local_files(), str(tmp_path / "0.log"))


def test_a_pipe_with_the_name_of_a_segment_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "00000000000000000000.log")
    with pytest.raises(OSError, match=r"\[Errno"):
        check_path(local_files(), str(tmp_path / "00000000000000000000.log"))


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize(
    "suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "partition.metadata"]
)
def test_the_rest_of_the_partition_is_shown_and_verified(root: Path, kind: str, suffix: str) -> None:
    (directory,) = (path for path in root.iterdir() if path.is_dir() and path.name.startswith("topic-"))
    path = min(one for one in directory.iterdir() if one.name.endswith(suffix))
    path.unlink()
    ODD[kind](path)
    rows = list(dump(local_files(), str(directory), Selection()))
    assert {row["file"] for row in rows if row["type"] == "batch"}
    assert kind == "directory" or [row["file"] for row in rows if row["type"] == "error"] == [str(path)]
    totals = Totals()
    found = list(verify(local_files(), str(directory), totals))
    assert any(finding.severity == ERROR and finding.file == str(path) for finding in found) or kind == "directory"
    assert totals.batches > 0
    log = min(one for one in directory.iterdir() if one.name.endswith(".log"))
    assert list(verify(local_files(), str(log), Totals())) is not None
