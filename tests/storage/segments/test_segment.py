"""One segment: lookups against a list, index entries as Kafka sets them (LogSegmentTest)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.storage.disk import names
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.storage.segments.segment_files import SegmentFiles, SegmentSettings
from kpybroker.storage.segments.segment_list import LogSegments
from tests.support.storage.batches import NOW_MS, batch
from tests.support.storage.lossy_files import LossyFiles


def segment(
    files: LossyFiles | None = None, base: int = 100, *, interval: int = 150, create: bool = True
) -> LogSegment:
    return LogSegment(
        SegmentFiles(files or LossyFiles(), "", base),
        SegmentSettings(1 << 20, interval),
        now_ms=NOW_MS,
        create=create,
    )


def add(to: LogSegment, first: int, count: int = 1, timestamp: int = NOW_MS) -> None:
    data = batch(*[b"v"] * count, base_offset=first, timestamp=timestamp)
    to.append(data, first, first + count - 1, timestamp, first + count - 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=40), st.integers(95, 320))
def test_translation_finds_the_first_batch_that_ends_at_or_above(shape: list[tuple[int, int]], target: int) -> None:
    """Also where compaction left gaps."""
    files = LossyFiles()
    found = segment(files)
    offset, placed = 100, []
    for gap, count in shape:
        offset += gap
        placed.append((offset + count - 1, found.size))
        add(found, offset, count)
        offset += count
    expected = next((position for last, position in placed if last >= target), None)
    reopened = segment(files, create=False)
    for one in (found, reopened):
        response = one.translate_offset(target)
        assert (response and response.position) == expected
    assert reopened.next_offset() == offset


def test_an_index_entry_follows_every_interval() -> None:
    found = segment(interval=150)
    for number in range(10):
        add(found, 100 + number)
    size = found.size // 10
    assert size < 150 < 3 * size
    entries = [found.offset_index.entry(slot) for slot in range(found.offset_index.file.entries)]
    assert entries == [(103, 3 * size), (106, 6 * size), (109, 9 * size)]


def test_the_time_index_gets_the_largest_timestamp_when_a_segment_becomes_inactive(files: LossyFiles) -> None:
    found = segment(files)
    for number, timestamp in enumerate((5, 9, 7)):
        add(found, 100 + number, timestamp=timestamp)
    found.become_inactive()
    assert found.time_index.last_entry == (9, 101)
    assert files.open_count == 1
    reopened = segment(files, create=False)
    assert (reopened.max_timestamp, reopened.offset_of_max_timestamp) == (9, 101)


def test_a_wrong_index_entry_is_noticed_and_fixed(files: LossyFiles) -> None:
    found = segment(files, interval=0)
    for number in range(10):
        add(found, 100 + number)
    size = found.size // 10
    found.offset_index.file.truncate(0)
    found.offset_index.append(102, 5 * size)
    found.write_out_indexes()
    reopened = segment(files, interval=0, create=False)
    assert reopened.translate_offset(103) == (3 * size, size)
    assert reopened.offset_index.file.entries == 9


def test_a_suffix_goes_to_all_files(files: LossyFiles) -> None:
    found = segment(files)
    add(found, 100)
    found.change_suffix("", names.DELETED_SUFFIX)
    assert {entry.name for entry in files.listdir("/")} == {
        f"{100:020d}{kind}.deleted" for kind in (".log", ".index", ".timeindex")
    }
    SegmentFiles(files, "", 100, names.DELETED_SUFFIX).remove()
    assert files.listdir("/") == []


def test_segments_are_ordered_by_base_offset(files: LossyFiles) -> None:
    segments = LogSegments()
    made = {base: segment(files, base) for base in (20, 0, 10)}
    for one in made.values():
        segments.add(one)
    assert segments.base_offsets == [0, 10, 20]
    assert (segments.first, segments.active) == (made[0], made[20])
    assert [segments.floor(offset) for offset in (-1, 0, 9, 10, 99)] == [None, made[0], made[0], made[10], made[20]]
    assert [segments.lower(offset) for offset in (0, 1, 10, 99)] == [None, made[0], made[0], made[20]]
    assert [segments.higher(offset) for offset in (-1, 0, 10, 20)] == [made[0], made[10], made[20], None]
    assert segments.from_offset(12) == [made[10], made[20]]
    assert segments.from_offset(12, 20) == [made[10]]
    segments.remove(20)
    assert segments.active is made[10]
    assert 20 not in segments
    assert len(segments) == 2
