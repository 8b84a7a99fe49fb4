"""The real file system, with and without what only POSIX has, and that the fake of the tests behaves as it does."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.control.levers.disk import FaultyFiles
from kpybroker.storage.disk.files import (
    Files,
    make_dirs,
    read_exactly,
    read_file,
    remove_tree,
    replace_file,
    replace_files,
    unlink_if_exists,
    write_all,
    write_file,
)
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.portable_files import PortableFiles
from kpybroker.system.files import HAS_POSIX_FILES, sync_file_system
from tests.support.storage.lossy_files import LossyFiles, PowerCut


@pytest.fixture(params=["local", "portable", "lossy", "faulty"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    if request.param == "lossy":
        files = LossyFiles()
        files.mkdir("/data")
        return files, "/data"
    if request.param == "faulty":
        return FaultyFiles(local_files()), str(tmp_path)
    return local_files() if request.param == "local" else PortableFiles(), str(tmp_path)


def test_a_file_keeps_what_is_written_where(place: tuple[Files, str]) -> None:
    files, root = place
    file = files.open(f"{root}/a", create=True)
    write_all(file, b"hello world", 0)
    write_all(file, memoryview(b"WORLD"), 6)
    assert file.pread(100, 0) == b"hello WORLD"
    assert file.pread(3, 8) == b"RLD"
    assert file.pread(3, 50) == b""
    file.truncate(5)
    assert file.size() == 5
    file.sync()
    file.close()
    assert read_file(files, f"{root}/a") == b"hello"


def test_many_files_are_replaced_together(place: tuple[Files, str]) -> None:
    files, root = place
    write_file(files, f"{root}/a", b"old", sync=True)
    replace_files(files, root, {f"{root}/a": b"new", f"{root}/b": b"b"})
    assert [read_file(files, f"{root}/{name}") for name in "ab"] == [b"new", b"b"]
    assert sorted(entry.name for entry in files.listdir(root)) == ["a", "b"]


def test_of_files_replaced_together_a_power_cut_leaves_old_or_new_ones() -> None:
    old, new = {"/a": b"old", "/b": b"old"}, {"/a": b"newer", "/b": b"newer"}
    for operation in range(1, 11):
        files = LossyFiles()
        files.syncs_all = True
        replace_files(files, "/", old)

        def cut(number: int, kind: str, path: str, last: int = files.operations + operation) -> None:
            if number == last:
                raise PowerCut

        files.before_operation = cut
        with pytest.raises(PowerCut):
            replace_files(files, "/", new)
        after = files.crash(random.Random(operation), in_order=True)
        assert {read_file(after, path) for path in new} <= {b"old", b"newer"}
    assert files.operations == 20, "each of them was the last one"


def test_all_is_synced_through_a_lock_and_not_without_one(tmp_path: Path) -> None:
    files = local_files()
    assert files.sync_all(str(tmp_path)) is False
    lock = files.lock(str(tmp_path / ".lock"))
    assert lock is not None
    descriptor = os.open(tmp_path, os.O_RDONLY)
    assert files.sync_all(str(tmp_path)) is sync_file_system(descriptor)
    os.close(descriptor)
    lock.release()
    assert files.sync_all(str(tmp_path)) is False


def test_opening_what_is_not_there_raises_and_stat_says_none(place: tuple[Files, str]) -> None:
    files, root = place
    with pytest.raises(FileNotFoundError):
        files.open(f"{root}/missing")
    assert files.stat(f"{root}/missing") is None
    assert read_file(files, f"{root}/missing") is None
    assert not unlink_if_exists(files, f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/missing", f"{root}/other")
    with pytest.raises(FileNotFoundError):
        files.listdir(f"{root}/missing")


def test_directories(place: tuple[Files, str]) -> None:
    files, root = place
    assert make_dirs(files, f"{root}/a/b/c")
    assert not make_dirs(files, f"{root}/a/b/c")
    write_file(files, f"{root}/a/b/file", b"x", sync=True)
    assert sorted(files.listdir(f"{root}/a/b")) == [("c", True, False), ("file", False, False)]
    found = files.stat(f"{root}/a/b")
    assert found is not None
    assert found.is_dir
    with pytest.raises(FileExistsError):
        files.mkdir(f"{root}/a")
    with pytest.raises(OSError):
        files.rmdir(f"{root}/a")
    remove_tree(files, f"{root}/a")
    assert files.listdir(root) == []


def test_replacing_a_file_leaves_no_temporary_one(place: tuple[Files, str]) -> None:
    files, root = place
    replace_file(files, f"{root}/checkpoint", b"one")
    replace_file(files, f"{root}/checkpoint", b"two")
    assert read_file(files, f"{root}/checkpoint") == b"two"
    assert [entry.name for entry in files.listdir(root)] == ["checkpoint"]


def test_mtime_is_in_milliseconds(place: tuple[Files, str]) -> None:
    files, root = place
    write_file(files, f"{root}/a", b"", sync=False)
    files.set_mtime(f"{root}/a", 1_234_567_890_123)
    found = files.stat(f"{root}/a")
    assert found is not None
    assert found.mtime_ms == 1_234_567_890_123


def test_a_lock_is_held_once(place: tuple[Files, str]) -> None:
    files, root = place
    lock = files.lock(f"{root}/.lock")
    assert lock is not None
    assert files.lock(f"{root}/.lock") is None
    lock.release()
    again = files.lock(f"{root}/.lock")
    assert again is not None
    again.release()


@pytest.mark.not_quick
def test_a_lock_is_seen_by_another_process(tmp_path: Path) -> None:
    """By `lockf`, which is what java.nio.channels.FileLock takes on Linux."""
    path = str(tmp_path / ".lock")
    lock = local_files().lock(path)
    assert lock is not None
    program = (
        "import fcntl,sys\n"
        "f=open(sys.argv[1],'r+b')\n"
        "try: fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\n"
        "except OSError: sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 7
    lock.release()
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 0


def test_disk_usage_of_a_real_volume(tmp_path: Path) -> None:
    usage = local_files().disk_usage(str(tmp_path))
    assert 0 < usage.usable_bytes <= usage.total_bytes


class _Trickle:
    """A file that writes and reads two bytes at a time, and is full after `capacity`."""

    def __init__(self, capacity: int) -> None:
        self.data = bytearray()
        self._capacity = capacity

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> int:
        count = min(2, len(data), self._capacity - position)
        self.data[position : position + count] = memoryview(data)[:count]
        return count

    def pread(self, size: int, position: int) -> bytes:
        return bytes(self.data[position : position + min(size, 2)])

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def sync(self) -> None: ...

    def size(self) -> int:
        return len(self.data)

    def fileno(self) -> int:
        return -1

    def close(self) -> None: ...


def test_short_writes_and_reads_are_continued() -> None:
    file = _Trickle(100)
    write_all(file, b"abcdefg", 0)
    assert file.data == b"abcdefg"
    assert read_exactly(file, 7, 0) == b"abcdefg"
    assert read_exactly(file, 50, 2) == b"cdefg"


def test_a_write_without_progress_is_a_full_disk() -> None:
    with pytest.raises(OSError) as caught:
        write_all(_Trickle(3), b"abcdefg", 0)
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.skipif(not HAS_POSIX_FILES, reason="needs POSIX")
def test_the_real_files_have_descriptors(tmp_path: Path) -> None:
    file = local_files().open(str(tmp_path / "a"), create=True)
    assert os.fstat(file.fileno()).st_size == 0
    file.close()
    file.close()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="making a link takes a privilege there")
@pytest.mark.parametrize("files", [local_files(), PortableFiles()], ids=["local", "portable"])
def test_no_symbolic_link_is_followed(files: Files, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_bytes(b"kept")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(target / "file")
    (root / "dangling").symlink_to(target / "none")
    (root / "directory").symlink_to(target)
    for name, writable in (("link", True), ("link", False), ("dangling", True), ("directory", False)):
        with pytest.raises(OSError, match="is a symbolic link") as raised:
            files.open(f"{root}/{name}", create=writable, writable=writable)
        assert raised.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="is a symbolic link"):
        write_file(files, f"{root}/link", b"", sync=False)
    with pytest.raises(OSError, match="is a symbolic link"):
        read_file(files, f"{root}/link")
    with pytest.raises(OSError, match="is a symbolic link"):
        files.lock(f"{root}/link")
    found = files.stat(f"{root}/directory")
    assert found is not None
    assert not found.is_dir
    assert all((entry.is_dir, entry.is_link) == (False, True) for entry in files.listdir(str(root)))
    remove_tree(files, str(root))
    assert (target / "file").read_bytes() == b"kept"
    assert sorted(os.listdir(target)) == ["file"]
