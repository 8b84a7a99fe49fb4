"""Delayed deletions: when they are due, which are dropped, and what failures mean."""

from __future__ import annotations

import errno

import pytest

from kpybroker.storage.disk.deletions import PendingDeletions, remove_log_job, sync_job, unlink_job
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import make_dirs, write_file
from tests.support.storage.lossy_files import LossyFiles, failing


def test_paths_are_due_once_and_not_before_their_time() -> None:
    pending = PendingDeletions()
    pending.add(20, ["/a/x", "/b/y"])
    pending.add(10, ["/a/z"])
    assert pending.take_due(9) == []
    assert pending.take_due(10) == ["/a/z"]
    pending.forget("/a")
    assert pending.take_due(20) == ["/b/y"]
    assert pending.take_due(100) == []


def with_files() -> LossyFiles:
    files = LossyFiles()
    make_dirs(files, "/a/t-0")
    for name in ("x", "y"):
        write_file(files, f"/a/t-0/{name}", b"data", sync=True)
    return files


def test_a_file_that_is_already_gone_is_no_failure() -> None:
    files = with_files()
    unlink_job(files, "/a", ["/a/t-0/x", "/a/t-0/none"])()
    assert [entry.name for entry in files.listdir("/a/t-0")] == ["y"]
    for _ in range(2):
        remove_log_job(files, "/a/t-0")()
        assert files.stat("/a/t-0") is None


def test_what_a_flush_writes_into_a_directory_while_it_is_removed_goes_with_it() -> None:
    files = with_files()
    flushes = iter(range(2))

    def flush(_: int, operation: str, path: str) -> None:
        if operation == "unlink" and next(flushes, None) is not None:
            write_file(files, "/a/t-0/leader-epoch-checkpoint", b"data", sync=False)

    files.before_operation = flush
    remove_log_job(files, "/a/t-0")()
    assert files.stat("/a/t-0") is None
    assert next(flushes, None) is None


def test_a_failure_other_than_a_full_disk_is_of_the_log_directory() -> None:
    files = with_files()
    files.before_operation = failing("/a")
    for job in (unlink_job(files, "/a", ["/a/t-0/x"]), remove_log_job(files, "/a/t-0"), sync_job(files, {"/a"})):
        with pytest.raises(LogDirError, check=lambda error: error.log_dir == "/a"):
            job()
    files.before_operation = failing("/a", errno.ENOSPC)
    unlink_job(files, "/a", ["/a/t-0/x"])()
    remove_log_job(files, "/a/t-0")()
    files.before_operation = None
    assert files.stat("/a/t-0/x") is not None
