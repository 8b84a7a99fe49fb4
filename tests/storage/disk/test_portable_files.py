"""Without renaming or removing an open file, as Windows has it, storage still gets what it relies on POSIX for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.storage.disk.files import read_file, remove_tree, write_file
from kpybroker.storage.disk.os_files import OsFiles
from kpybroker.storage.disk.portable_files import PortableFiles
from kpybroker.storage.segments.file_records import FileRecords
from kpybroker.storage.segments.segment_files import SegmentFiles
from tests.support.windows import rules
from tests.support.windows.rules import enforced


@pytest.fixture(autouse=True)
def _windows() -> Iterator[None]:
    with enforced():
        yield


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


def names(root: str) -> list[str]:
    """What is really there."""
    return sorted(os.path.relpath(os.path.join(at, name), root) for at, _, files in os.walk(root) for name in files)


def test_the_rules_are_those_of_windows(root: str) -> None:
    """Otherwise the tests below would show nothing."""
    files = OsFiles()
    os.mkdir(f"{root}/d")
    file = files.open(f"{root}/d/a", create=True)
    files.open(f"{root}/b", create=True).close()
    with pytest.raises(PermissionError):
        files.rename(f"{root}/d/a", f"{root}/c")
    with pytest.raises(PermissionError):
        files.rename(f"{root}/b", f"{root}/d/a")
    with pytest.raises(PermissionError):
        files.rename(f"{root}/d", f"{root}/e")
    with pytest.raises(PermissionError):
        files.unlink(f"{root}/d/a")
    file.close()
    files.rename(f"{root}/d", f"{root}/e")


def test_the_rules_reach_brokers_in_other_processes() -> None:
    """`make compat-portable` and `compat_tests/storage/test_portable.py` start them with this."""
    folder = str(Path(rules.__file__).parent)
    environment = {**os.environ, "KPYBROKER_PORTABLE": "1", "PYTHONPATH": folder}
    shown = subprocess.run(
        [sys.executable, "-c", "import os; print(hasattr(os.unlink, '__wrapped__'))"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "True\n", shown.stderr


def test_an_open_file_follows_its_names(root: str) -> None:
    files = PortableFiles()
    files.mkdir(f"{root}/t-0")
    file = files.open(f"{root}/t-0/a", create=True)
    file.pwrite(b"one", 0)
    files.rename(f"{root}/t-0/a", f"{root}/t-0/b")
    file.pwrite(b"two", 3)
    files.rename(f"{root}/t-0", f"{root}/t-0.x-delete")
    assert file.pread(10, 0) == b"onetwo"
    file.truncate(4)
    file.sync()
    assert file.size() == 4
    assert read_file(files, f"{root}/t-0.x-delete/b") == b"onet"
    file.close()
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.pread(1, 0)
    assert names(root) == ["t-0.x-delete/b"]


def test_a_failed_rename_changes_nothing(root: str) -> None:
    files = PortableFiles()
    file = files.open(f"{root}/a", create=True)
    file.pwrite(b"kept", 0)
    with pytest.raises(OSError):
        files.rename(f"{root}/a", f"{root}/missing/a")
    assert file.pread(10, 0) == b"kept"


def test_a_reader_keeps_a_file_that_is_removed(root: str) -> None:
    files = PortableFiles()
    write_file(files, f"{root}/a", b"old", sync=False)
    first, second = files.open(f"{root}/a", writable=False), files.open(f"{root}/a", writable=False)
    files.unlink(f"{root}/a")
    assert files.stat(f"{root}/a") is None
    assert files.listdir(root) == []
    write_file(files, f"{root}/a", b"new", sync=False)
    first.close()
    assert second.pread(10, 0) == b"old"
    second.close()
    assert names(root) == ["a"]
    assert read_file(files, f"{root}/a") == b"new"


def test_a_reader_keeps_a_file_that_is_replaced(root: str) -> None:
    files = PortableFiles()
    write_file(files, f"{root}/a", b"old", sync=False)
    write_file(files, f"{root}/b", b"new", sync=False)
    reader = files.open(f"{root}/a", writable=False)
    files.rename(f"{root}/b", f"{root}/a")
    assert reader.pread(10, 0) == b"old"
    assert read_file(files, f"{root}/a") == b"new"
    assert [entry.name for entry in files.listdir(root)] == ["a"]
    reader.close()
    assert names(root) == ["a"]


def test_replacing_with_a_missing_file_leaves_the_target(root: str) -> None:
    files = PortableFiles()
    write_file(files, f"{root}/a", b"old", sync=False)
    reader = files.open(f"{root}/a")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/b", f"{root}/a")
    reader.close()
    assert read_file(files, f"{root}/a") == b"old"


def test_a_removed_directory_goes_with_its_last_reader(root: str) -> None:
    files = PortableFiles()
    files.mkdir(f"{root}/t-0")
    for name in "ab":
        write_file(files, f"{root}/t-0/{name}", name.encode(), sync=False)
    readers = [files.open(f"{root}/t-0/{name}", writable=False) for name in "ab"]
    files.rename(f"{root}/t-0", f"{root}/t-0.x-delete")
    remove_tree(files, f"{root}/t-0.x-delete")
    assert files.stat(f"{root}/t-0.x-delete") is None
    assert files.listdir(root) == []
    assert [reader.pread(1, 0) for reader in readers] == [b"a", b"b"]
    readers[0].close()
    assert readers[1].pread(1, 0) == b"b"
    readers[1].close()
    assert os.listdir(root) == []


def test_a_directory_may_be_made_again_before_the_last_reader_has_gone(root: str) -> None:
    files = PortableFiles()
    files.mkdir(f"{root}/d")
    write_file(files, f"{root}/d/a", b"old", sync=False)
    reader = files.open(f"{root}/d/a")
    remove_tree(files, f"{root}/d")
    files.mkdir(f"{root}/d")
    write_file(files, f"{root}/d/a", b"new", sync=False)
    assert [entry.name for entry in files.listdir(f"{root}/d")] == ["a"]
    assert reader.pread(3, 0) == b"old"
    reader.close()
    assert names(root) == ["d/a"]
    assert read_file(files, f"{root}/d/a") == b"new"


def test_a_directory_with_files_is_not_removed(root: str) -> None:
    files = PortableFiles()
    files.mkdir(f"{root}/d")
    write_file(files, f"{root}/d/a", b"", sync=False)
    reader = files.open(f"{root}/d/a")
    write_file(files, f"{root}/d/b", b"", sync=False)
    files.unlink(f"{root}/d/a")
    with pytest.raises(OSError):
        files.rmdir(f"{root}/d")
    reader.close()
    assert names(root) == ["d/b"]


def test_what_a_crash_leaves_of_a_file_set_aside_ends_in_deleted(root: str) -> None:
    """So the loading of its log removes it."""
    files = PortableFiles()
    write_file(files, f"{root}/00000000000000000000.log", b"", sync=False)
    files.open(f"{root}/00000000000000000000.log")
    files.unlink(f"{root}/00000000000000000000.log")
    (left,) = names(root)
    assert left.endswith(".deleted")


def test_truncating_records_leaves_a_reader_the_old_ones(root: str) -> None:
    records = FileRecords(SegmentFiles(PortableFiles(), root, 0))
    records.append(b"0123456789")
    piece = records.slice(5, 5)
    records.truncate_to(5)
    records.append(b"abcde")
    assert piece.read() == b"56789"
    assert records.read(0, 10) == b"01234abcde"
    piece.release()
    records.close()
    assert names(root) == ["00000000000000000000.log"]


def test_threads_read_and_write_where_they_say_while_names_change(root: str) -> None:
    """A descriptor has one position for all threads, and a rename closes it."""
    files = PortableFiles()
    files.mkdir(f"{root}/d0")
    file = files.open(f"{root}/d0/a", create=True)
    size, renames = 64, 80
    done = threading.Event()
    wrong: list[bytes] = []

    def work(number: int) -> None:
        own = bytes([number]) * size
        while not done.is_set():
            file.pwrite(own, number * size)
            if (seen := file.pread(size, number * size)) != own:
                wrong.append(seen)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for turn in range(renames):
        files.rename(f"{root}/d{turn}", f"{root}/d{turn + 1}")
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    file.pwrite(b"end", 0)
    assert (read_file(files, f"{root}/d{renames}/a") or b"").startswith(b"end")
