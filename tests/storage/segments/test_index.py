"""Offset and time index: Kafka's bytes, and lookups that agree with a plain list."""

from __future__ import annotations

import errno
import struct
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpybroker.storage.segments.index as storage_index
from kpybroker.storage.disk.errors import CorruptIndexError
from kpybroker.storage.disk.files import File, read_exactly, read_file, write_file
from kpybroker.storage.segments.index import OffsetIndex, TimeIndex
from tests.support.storage.lossy_files import LossyFiles, failing

BASE = 1000
PATH = "/00000000000000001000.index"


def offset_index(files: LossyFiles, max_bytes: int = 1 << 20, *, active: bool = True) -> OffsetIndex:
    return OffsetIndex(files, PATH, BASE, max_bytes, active=active)


@pytest.fixture
def index(files: LossyFiles) -> OffsetIndex:
    return offset_index(files)


def time_index(files: LossyFiles, max_bytes: int = 1 << 20) -> TimeIndex:
    return TimeIndex(files, PATH, BASE, max_bytes)


def test_entries_are_relative_offsets_and_positions(index: OffsetIndex, files: LossyFiles) -> None:
    index.append(1005, 4200)
    index.append(1009, 9000)
    index.file.write_out()
    assert read_file(files, PATH) == struct.pack(">iiii", 5, 4200, 9, 9000)


def test_time_entries_are_timestamps_and_relative_offsets(files: LossyFiles) -> None:
    index = time_index(files)
    index.maybe_append(123456789012, 1005)
    index.file.write_out()
    assert read_file(files, PATH) == struct.pack(">qi", 123456789012, 5)


def test_a_new_index_is_an_empty_file(index: OffsetIndex, files: LossyFiles) -> None:
    assert read_file(files, PATH) == b""
    assert index.lookup(5000) == (BASE, 0)
    assert index.fetch_upper_bound_offset(0) is None
    assert files.open_count == 0


def test_offsets_must_increase() -> None:
    index = offset_index(LossyFiles())
    index.append(1005, 10)
    with pytest.raises(CorruptIndexError):
        index.append(1005, 20)


def test_a_full_index_takes_no_more_and_the_time_index_keeps_a_slot() -> None:
    index = offset_index(LossyFiles(), 17)
    index.append(1001, 1)
    assert not index.is_full
    index.append(1002, 2)
    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.append(1003, 3)
    times = time_index(LossyFiles(), 24)
    assert not times.is_full
    times.maybe_append(1, 1001)
    assert times.is_full
    with pytest.raises(ValueError, match="full"):
        times.maybe_append(2, 1002)
    times.maybe_append(2, 1002, skip_full_check=True)
    assert times.file.entries == 2


def test_an_earlier_or_equal_timestamp_adds_no_entry() -> None:
    index = time_index(LossyFiles())
    index.maybe_append(10, 1001)
    index.maybe_append(10, 1002)
    assert index.file.entries == 1
    with pytest.raises(CorruptIndexError):
        index.maybe_append(9, 1003)
    with pytest.raises(CorruptIndexError):
        index.maybe_append(11, 1000)


@pytest.mark.parametrize(
    "content",
    [
        b"1234567",  # no multiple of 8
        struct.pack(">ii", -5, 10),  # below the base
        struct.pack(">iiii", 5, 10, 9, 500),  # after the log's end
        struct.pack(">ii", 5, 10) + bytes(8),  # zeros of a preallocated file
    ],
)
def test_what_cannot_be_is_found(files: LossyFiles, content: bytes) -> None:
    write_file(files, PATH, content, sync=False)
    with pytest.raises(CorruptIndexError):
        offset_index(files).sanity_check(log_size=400)


@pytest.mark.parametrize("content", [b"12345678901", struct.pack(">qiqi", 5, 1, 4, 2), struct.pack(">qi", 5, -1)])
def test_what_cannot_be_of_times_is_found(files: LossyFiles, content: bytes) -> None:
    write_file(files, PATH, content, sync=False)
    with pytest.raises(CorruptIndexError):
        time_index(files).sanity_check()


def test_an_index_that_shrank_since_it_was_opened_is_corrupt(files: LossyFiles) -> None:
    index = offset_index(files, active=False)
    for number in range(2000):
        index.append(BASE + number, number)
    write_file(files, PATH, b"", sync=False)
    with pytest.raises(CorruptIndexError):
        index.lookup(BASE + 5)
    with pytest.raises(CorruptIndexError):
        index.entry(7)


def test_an_inactive_index_is_not_kept_open(index: OffsetIndex, files: LossyFiles) -> None:
    for number in range(10):
        index.append(BASE + number, number * 10)
    index.file.write_out()
    assert files.open_count == 1
    index.file.keep_open(False)
    assert index.lookup(BASE + 3) == (BASE + 3, 30)
    assert files.open_count == 0


def test_an_active_index_writes_many_entries_at_once(index: OffsetIndex, files: LossyFiles) -> None:
    began = files.operations
    for number in range(1000):
        index.append(BASE + number, number * 10)
        assert index.lookup(BASE + number // 2) == (BASE + number // 2, number // 2 * 10)
    assert 10 < files.operations - began < 20
    index.file.sync()
    assert read_file(files, PATH) == b"".join(struct.pack(">ii", number, number * 10) for number in range(1000))
    assert not index.file.handle.dirty


@pytest.mark.parametrize("rest", [0, 1, 63, 64, 65, 99, 100])
def test_entries_are_removed_whether_they_were_written_or_not(index: OffsetIndex, files: LossyFiles, rest: int) -> None:
    for number in range(100):
        index.append(BASE + number, number + 1)
    index.drop_last(rest)
    assert (index.file.entries, index.last_offset) == (rest, BASE + max(rest - 1, 0))
    index.append(BASE + 500, 7000)
    assert index.lookup(BASE + 499).offset == BASE + max(rest - 1, 0)
    index.file.keep_open(False)
    expected = [(number, number + 1) for number in range(rest)] + [(500, 7000)]
    assert read_file(files, PATH) == b"".join(struct.pack(">ii", *entry) for entry in expected)


def test_entries_that_find_no_space_are_kept(index: OffsetIndex, files: LossyFiles) -> None:
    index.append(BASE + 1, 10)
    files.before_operation = failing("/", errno.ENOSPC)
    for write in (index.file.write_out, index.file.sync, lambda: index.file.keep_open(False)):
        with pytest.raises(OSError, match="No space left"):
            write()
    for number in range(2, 65):
        index.append(BASE + number, number * 10)
    with pytest.raises(OSError, match="No space left"):
        index.append(BASE + 65, 650)
    assert index.lookup(BASE + 65) == (BASE + 64, 640)
    files.before_operation = None
    index.append(BASE + 70, 700)
    index.file.write_out()
    assert [offset_index(files).entry(slot).offset - BASE for slot in range(65)] == [*range(1, 65), 70]


increasing = st.lists(st.integers(1, 50), max_size=1200).map(
    lambda steps: [sum(steps[: at + 1]) for at in range(len(steps))] if len(steps) < 60 else list(range(1, len(steps)))
)


@given(increasing, st.integers(-5, 3000), st.booleans())
def test_lookups_agree_with_a_list(relative: list[int], target: int, active: bool) -> None:
    files = LossyFiles()
    index = offset_index(files, active=active)
    for offset in relative:
        index.append(BASE + offset, offset * 7)
    slot = bisect_right(relative, target) - 1
    expected = (BASE, 0) if slot < 0 else (BASE + relative[slot], relative[slot] * 7)
    assert index.lookup(BASE + target) == expected
    above = [BASE + offset for offset in relative if offset * 7 >= target]
    assert index.fetch_upper_bound_offset(target) == (above[0] if above else None)
    index.file.write_out()
    reopened = offset_index(files)
    assert reopened.lookup(BASE + target) == expected
    reopened.truncate_to(BASE + target)
    assert reopened.file.entries == sum(1 for offset in relative if offset < target)
    assert reopened.last_offset == max([BASE + offset for offset in relative if offset < target], default=BASE)


@given(increasing, st.lists(st.integers(-5, 1300), max_size=12), st.integers(0, 1300), st.booleans())
def test_lookups_one_after_the_other_agree_with_a_list(
    relative: list[int], targets: list[int], kept: int, active: bool
) -> None:
    index = offset_index(LossyFiles(), active=active)
    for offset in relative:
        index.append(BASE + offset, offset)
    for target in [*targets, *sorted(targets)]:
        slot = bisect_right(relative, target) - 1
        assert index.lookup(BASE + target) == ((BASE, 0) if slot < 0 else (BASE + relative[slot], relative[slot]))
    index.truncate_to(BASE + kept)
    relative = [offset for offset in relative if offset < kept]
    for target in targets:
        slot = bisect_right(relative, target) - 1
        assert index.lookup(BASE + target) == ((BASE, 0) if slot < 0 else (BASE + relative[slot], relative[slot]))


def test_a_lookup_reads_single_entries_until_one_block_has_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    index = offset_index(LossyFiles())
    for number in range(100_000):
        index.append(BASE + number, number)
    reads: list[int] = []

    def counted(file: File, size: int, position: int) -> bytes:
        reads.append(size)
        return read_exactly(file, size, position)

    monkeypatch.setattr(storage_index, "read_exactly", counted)
    assert index.lookup(BASE + 50_001) == (BASE + 50_001, 50_001)
    assert reads[:-1] == [8] * 8
    assert reads[-1] <= 4096


@given(increasing, st.integers(-5, 3000))
def test_time_lookups_agree_with_a_list(relative: list[int], target: int) -> None:
    files = LossyFiles()
    index = time_index(files)
    for offset in relative:
        index.maybe_append(offset * 3, BASE + offset)
    slot = bisect_right([offset * 3 for offset in relative], target) - 1
    assert index.lookup(target) == ((-1, BASE) if slot < 0 else (relative[slot] * 3, BASE + relative[slot]))
    index.truncate_to(BASE + target)
    assert index.file.entries == sum(1 for offset in relative if offset < target)
