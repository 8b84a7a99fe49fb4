"""Each kind of disk fault, on real files: when it happens, to what, how often, and what a crash leaves."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kpybroker.control.levers.disk import (
    CRASH_BEFORE_FSYNC,
    EIO,
    FULL,
    OPERATIONS,
    SLOW_FSYNC,
    TORN_WRITE,
    DiskRule,
    FaultyFile,
    FaultyFiles,
)
from kpybroker.storage.disk.files import Files, read_file, replace_file, write_all, write_file
from kpybroker.storage.disk.local_files import local_files

DEADLINE_S = 60


@pytest.fixture
def files() -> Iterator[FaultyFiles]:
    made = FaultyFiles(local_files())
    yield made
    made.crash()  # closes what is open


@pytest.fixture
def log(files: FaultyFiles, tmp_path: Path) -> FaultyFile:
    """An open file with `synced` in it."""
    (tmp_path / "orders-0").mkdir()
    file = files.open(f"{tmp_path}/orders-0/0.log", create=True)
    write_all(file, b"synced", 0)
    file.sync()
    return file


def content(files: Files, tmp_path: Path, name: str = "orders-0/0.log") -> bytes | None:
    return read_file(files, f"{tmp_path}/{name}")


def fails(code: int, call: Callable[..., object], *args: object) -> None:
    with pytest.raises(OSError) as raised:
        call(*args)
    assert raised.value.errno == code


# --- full


def test_a_disk_takes_so_many_bytes_and_no_more_until_there_is_space_again(
    files: FaultyFiles, log: FaultyFile, tmp_path: Path
) -> None:
    full = files.add(DiskRule(FULL, after=4))
    assert files.disk_usage(str(tmp_path)).usable_bytes == 4
    fails(errno.ENOSPC, write_all, log, b"abcdef", 6)
    assert content(files, tmp_path) == b"syncedabcd"
    assert files.disk_usage(str(tmp_path)).usable_bytes == 0
    fails(errno.ENOSPC, files.mkdir, f"{tmp_path}/new")
    fails(errno.ENOSPC, lambda: files.open(f"{tmp_path}/new.log", create=True))
    assert full.hits == 3
    files.open(f"{tmp_path}/orders-0/0.log", create=True).close()  # it exists
    log.truncate(6)
    files.remove(full)
    write_all(log, b"abcdef", 6)
    assert content(files, tmp_path) == b"syncedabcdef"


def test_space_returns_after_some_refusals(files: FaultyFiles, log: FaultyFile) -> None:
    full = files.add(DiskRule(FULL, times=2))
    fails(errno.ENOSPC, log.pwrite, b"a", 6)
    fails(errno.ENOSPC, log.pwrite, b"a", 6)
    assert log.pwrite(b"a", 6) == 1
    assert full.hits == 2


# --- eio


@pytest.mark.parametrize("path", ["*", "*.log", "orders-0/*", "*orders*", "0.log"])
def test_a_path_is_a_glob_for_the_whole_path_or_its_end(files: FaultyFiles, log: FaultyFile, path: str) -> None:
    files.add(DiskRule(EIO, path=path))
    fails(errno.EIO, log.pwrite, b"a", 6)


@pytest.mark.parametrize("path", ["orders-1/*", "log", "orders-0", "*.index"])
def test_other_paths_do_not_fail(files: FaultyFiles, log: FaultyFile, path: str) -> None:
    fault = files.add(DiskRule(EIO, path=path))
    assert log.pwrite(b"a", 6) == 1
    assert fault.hits == 0


def test_every_operation_can_fail_and_those_that_are_not_named_do_not(
    files: FaultyFiles, log: FaultyFile, tmp_path: Path
) -> None:
    place = str(tmp_path)
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: files.open(f"{place}/orders-0/0.log").close(),
        "create": lambda: files.open(f"{place}/made", create=True).close(),
        "read": lambda: log.pread(1, 0),
        "write": lambda: log.pwrite(b"a", 6),
        "truncate": lambda: log.truncate(6),
        "sync": log.sync,
        "rename": lambda: files.rename(f"{place}/made", f"{place}/renamed"),
        "unlink": lambda: files.unlink(f"{place}/renamed"),
        "list": lambda: files.listdir(place),
        "mkdir": lambda: files.mkdir(f"{place}/folder"),
        "rmdir": lambda: files.rmdir(f"{place}/folder"),
    }
    assert tuple(calls) == OPERATIONS
    for operation, call in calls.items():
        others = files.add(DiskRule(EIO, operations=frozenset(OPERATIONS) - {operation}))
        call()
        files.remove(others)
    calls["create"]()
    calls["mkdir"]()
    for operation, call in calls.items():
        fault = files.add(DiskRule(EIO, operations=frozenset((operation,))))
        if operation == "create":
            (tmp_path / "made").unlink()
        fails(errno.EIO, call)
        assert fault.hits == 1
        files.remove(fault)
    files.add(DiskRule(EIO))
    fails(errno.EIO, files.sync_dir, place)
    fails(errno.EIO, files.stat, place)
    fails(errno.EIO, log.fileno)


def test_a_rule_may_wait_and_may_end(files: FaultyFiles, log: FaultyFile) -> None:
    fault = files.add(DiskRule(EIO, operations=frozenset(("write",)), after=2, times=1))
    log.pwrite(b"a", 6)
    log.pread(1, 0)
    log.pwrite(b"b", 7)
    fails(errno.EIO, log.pwrite, b"c", 8)
    log.pwrite(b"c", 8)
    assert fault.hits == 1


def test_rules_follow_a_file_that_is_renamed(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    files.rename(f"{tmp_path}/orders-0", f"{tmp_path}/orders-0.gone")
    files.add(DiskRule(EIO, path="orders-0.gone/*"))
    fails(errno.EIO, log.pwrite, b"a", 6)


# --- slow syncs


def test_a_sync_in_a_thread_waits_until_the_rule_is_removed(files: FaultyFiles, log: FaultyFile) -> None:
    slow = files.add(DiskRule(SLOW_FSYNC, delay_ms=DEADLINE_S * 1000))
    log.sync()  # this is the loop's thread
    assert slow.hits == 0
    thread = threading.Thread(target=log.sync)
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    while not slow.hits and time.monotonic() < deadline:
        os.sched_yield()
    assert thread.is_alive()
    files.remove(slow)
    thread.join(DEADLINE_S / 2)
    assert not thread.is_alive()


# --- crashes


def test_a_kill_loses_nothing(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    write_all(log, b" not", 6)
    files.crash()
    assert content(files, tmp_path) == b"synced not"


def test_what_is_not_synced_is_lost(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    fault = files.add(DiskRule(CRASH_BEFORE_FSYNC, path="*.log"))
    write_all(log, b" not", 6)
    write_file(files, f"{tmp_path}/other", b"not of the rule", sync=False)
    replace_file(files, f"{tmp_path}/replaced.log", b"synced before its rename")
    files.crash()
    assert content(files, tmp_path) == b"synced"
    assert content(files, tmp_path, "other") == b"not of the rule"
    assert content(files, tmp_path, "replaced.log") == b"synced before its rename"
    assert fault.hits == 1


def test_a_synced_write_is_kept_and_a_failed_sync_is_none(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    files.add(DiskRule(CRASH_BEFORE_FSYNC))
    write_all(log, b" this", 6)
    log.sync()
    write_all(log, b" but not this", 11)
    failure = files.add(DiskRule(EIO, operations=frozenset(("sync",))))
    fails(errno.EIO, log.sync)
    files.remove(failure)
    files.crash()
    assert content(files, tmp_path) == b"synced this"


def test_writes_are_lost_under_the_last_name_and_not_if_the_file_is_gone(
    files: FaultyFiles, log: FaultyFile, tmp_path: Path
) -> None:
    files.add(DiskRule(CRASH_BEFORE_FSYNC))
    write_all(log, b" not", 6)
    log.close()
    write_file(files, f"{tmp_path}/orders-0/1.log", b"gone", sync=False)
    files.unlink(f"{tmp_path}/orders-0/1.log")
    files.rename(f"{tmp_path}/orders-0", f"{tmp_path}/moved")
    files.crash()
    assert content(files, tmp_path, "moved/0.log") == b"synced"
    assert content(files, tmp_path, "moved/1.log") is None


def test_a_rule_that_is_removed_before_the_crash_loses_nothing(
    files: FaultyFiles, log: FaultyFile, tmp_path: Path
) -> None:
    fault = files.add(DiskRule(CRASH_BEFORE_FSYNC))
    write_all(log, b" kept", 6)
    files.remove(fault)
    files.add(DiskRule(CRASH_BEFORE_FSYNC))
    files.crash()
    assert content(files, tmp_path) == b"synced kept"


def test_of_the_last_write_half_is_there(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    fault = files.add(DiskRule(TORN_WRITE, path="*.log"))
    write_all(log, b" whole", 6)
    write_all(log, b" half is torn", 12)
    write_file(files, f"{tmp_path}/later", b"not of the rule", sync=False)
    files.crash()
    assert content(files, tmp_path) == b"synced whole half "
    assert fault.hits == 1


def test_a_write_over_others_is_torn_too(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    files.add(DiskRule(TORN_WRITE))
    write_all(log, b"SYNC", 1)
    files.crash()
    assert content(files, tmp_path) == b"sSYced"


def test_a_write_that_is_synced_or_cut_off_is_not_torn(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    fault = files.add(DiskRule(TORN_WRITE))
    write_all(log, b" whole", 6)
    log.sync()
    files.crash()
    assert content(files, tmp_path) == b"synced whole"
    again = files.open(f"{tmp_path}/orders-0/0.log")
    write_all(again, b" refused", 12)
    again.truncate(12)
    files.crash()
    assert content(files, tmp_path) == b"synced whole"
    assert fault.hits == 0


def test_a_crash_closes_what_is_open_and_releases_locks(files: FaultyFiles, log: FaultyFile, tmp_path: Path) -> None:
    held = files.lock(f"{tmp_path}/.lock")
    assert held is not None
    assert files.lock(f"{tmp_path}/.lock") is None
    files.crash()
    fails(errno.EBADF, log.pread, 1, 0)
    again = files.lock(f"{tmp_path}/.lock")
    assert again is not None
    again.release()


def test_with_a_fault_each_file_is_synced_by_itself(files: FaultyFiles, tmp_path: Path) -> None:
    """A rule may be about any of them."""
    assert files.lock(f"{tmp_path}/.lock") is not None
    without = files.sync_all(str(tmp_path))
    fault = files.add(DiskRule("eio", path="*.log", operations=frozenset({"sync"})))
    assert files.sync_all(str(tmp_path)) is False
    files.remove(fault)
    assert files.sync_all(str(tmp_path)) is without
