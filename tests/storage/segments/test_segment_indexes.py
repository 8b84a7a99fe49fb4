"""Rebuilt indexes equal those that appends wrote; and index files that exist or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.config.topic import LogConfig
from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.segments.segment_files import SegmentFiles
from kpybroker.storage.segments.segment_indexes import SegmentIndexes, walk
from kpybroker.storage.segments.segment_list import open_segment
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import iter_batches
from tests.support.storage.batches import NOW_MS, batch, log_config
from tests.support.storage.lossy_files import LossyFiles

KINDS = (names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX)
CONFIG: LogConfig = log_config(index_interval_bytes=150)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_the_walk_finds_the_entries_that_appends_made(timestamps: list[int]) -> None:
    files = LossyFiles()
    segment = open_segment(SegmentFiles(files, "", 100), CONFIG, now_ms=NOW_MS, create=True)
    for number, timestamp in enumerate(timestamps):
        offset = 100 + number
        segment.append(batch(base_offset=offset, timestamp=timestamp), offset, offset, timestamp, offset)
    segment.become_inactive()
    segment.close_handlers()
    written = [read_file(files, segment.files.path(kind)) for kind in KINDS]
    again = open_segment(SegmentFiles(files, "", 100), CONFIG, now_ms=NOW_MS)
    again.rebuild_indexes()
    assert [read_file(files, again.files.path(kind)) for kind in KINDS] == written
    found = walk(again.records.headers(), 100, CONFIG.index_interval_bytes, again)
    assert found.max_timestamp == max(timestamps, default=-1)
    assert found.offset_of_max_timestamp == (100 + timestamps.index(found.max_timestamp) if timestamps else 100)


@pytest.mark.parametrize("bases", [(100, 100), (101, 100), (99,), (100, 100 + 2**31)])
def test_offsets_that_are_not_of_this_segment_are_damage(bases: tuple[int, ...]) -> None:
    data = b"".join(batch(base_offset=base) for base in bases)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.CORRUPT_MESSAGE):
        walk(iter_batches(data), 100, 4096, "it")


def test_files_that_were_never_opened_are_renamed_and_removed_too(files: LossyFiles) -> None:
    where = SegmentFiles(files, "", 0)
    indexes = SegmentIndexes(where, 1 << 20)
    indexes.open_offset(active=True, log_size=0)
    indexes.open_time(active=True)
    indexes.close()
    indexes.rename(names.INDEX_SUFFIX, "/y.index")
    assert files.stat(where.path(names.INDEX_SUFFIX)) is None
    assert files.stat("/y.index") is not None
    indexes.rename(names.INDEX_SUFFIX, "/z")
    assert files.stat("/z") is None
    files.open(where.path(names.TIME_INDEX_SUFFIX)).pwrite(bytes(12), 0)
    indexes.make_empty()
    assert files.stat(where.path(names.TIME_INDEX_SUFFIX)) is None


def test_empty_indexes_stay_when_a_segment_is_recovered(files: LossyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that was killed with ten thousand empty partitions would make twenty thousand files."""
    segment = open_segment(SegmentFiles(files, "", 0), CONFIG, now_ms=NOW_MS, create=True)
    unlinked: list[str] = []
    monkeypatch.setattr(files, "unlink", unlinked.append)
    segment.reset_indexes()
    assert unlinked == []
    segment.append(batch(base_offset=0, timestamp=5), 0, 0, 5, 0)
    segment.become_inactive()
    segment.reset_indexes()
    assert unlinked == [segment.files.path(names.TIME_INDEX_SUFFIX)], "an offset index has nothing of one batch"
