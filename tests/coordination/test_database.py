"""The file of the embedded tree, and who may read it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kpybroker.coordination.database import open_database
from kpybroker.coordination.tree import CoordinationUnavailable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


def test_all_files_of_a_new_tree_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        database, _, _ = open_database(tmp_path / "c.sqlite")
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        database.close()
    finally:
        os.umask(before)
    assert modes == {"c.sqlite": 0o600, "c.sqlite-wal": 0o600}


def test_a_tree_that_others_may_read_is_opened_as_it_is(tmp_path: Path) -> None:
    """An administrator may have it so; the start says it."""
    path = tmp_path / "c.sqlite"
    open_database(path)[0].close()
    path.chmod(0o640)
    open_database(path)[0].close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_opening_it_again_in_the_same_process_leaves_it_locked(tmp_path: Path) -> None:
    """A descriptor that is closed would drop the lock of the first one: POSIX's locks belong to the process."""
    path = tmp_path / "c.sqlite"
    first, _, _ = open_database(path)
    for _ in range(2):
        with pytest.raises(CoordinationUnavailable, match="in use by another process"):
            open_database(path)
    first.close()
    open_database(path)[0].close()
