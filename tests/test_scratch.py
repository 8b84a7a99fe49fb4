"""Files of a run are in memory only where there is room, and what ended runs left is removed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import scratch

ROOM = f"MemTotal: 1 kB\nMemAvailable:   {scratch.AVAILABLE_MIN // 1024} kB\n"


def test_there_is_room_where_machine_and_folder_have_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(ROOM)
    monkeypatch.setattr(scratch, "BYTES_MIN", 1)
    assert scratch.has_room(tmp_path, meminfo)
    assert not scratch.has_room(tmp_path / "missing", meminfo)
    meminfo.write_text("MemTotal: 1 kB\n")
    assert not scratch.has_room(tmp_path, meminfo)
    meminfo.write_text(ROOM)
    monkeypatch.setattr(scratch, "BYTES_MIN", 1 << 80)
    assert not scratch.has_room(tmp_path, meminfo)


def test_a_run_has_its_folder_and_removes_those_of_runs_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "of this test")
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f"{scratch.NAME}{ended.pid}" / "data").mkdir(parents=True)
    (tmp_path / f"{scratch.NAME}{os.getppid()}").mkdir()
    folder = scratch.begin(tmp_path)
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(folder)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{scratch.NAME}{process}" for process in (os.getpid(), os.getppid())
    }
