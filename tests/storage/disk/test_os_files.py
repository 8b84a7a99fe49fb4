"""What the file system of POSIX creates."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kpybroker.storage.disk.files import make_dirs, replace_file
from kpybroker.storage.disk.os_files import OsFiles
from kpybroker.storage.disk.portable_files import PortableFiles
from kpybroker.system.files import HAS_POSIX_FILES

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


FILES = [PortableFiles(), *([OsFiles()] if HAS_POSIX_FILES else [])]


@pytest.mark.parametrize("files", FILES, ids=lambda files: type(files).__name__)
def test_everything_is_private_from_its_creation_and_what_exists_keeps_its_mode(
    tmp_path: Path, files: OsFiles | PortableFiles
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    before = os.umask(0)
    try:
        make_dirs(files, str(tmp_path / "a" / "b"))
        replace_file(files, str(tmp_path / "a" / "b" / "checkpoint"), b"1")
        lock = files.lock(str(tmp_path / "a" / ".lock"))
        files.open(str(tmp_path / "shared" / "x"), create=True).close()
    finally:
        os.umask(before)
    assert lock is not None
    lock.release()
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {
        "a": 0o700,
        "a/b": 0o700,
        "a/b/checkpoint": 0o600,
        "a/.lock": 0o600,
        "shared": 0o750,
        "shared/x": 0o600,
    }
