"""Reading a log: bounds, isolation, lookups by time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kpybroker.storage.disk.files import unlink_if_exists
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.reader import HEADER_COST
from kpybroker.storage.segments.segment import LogSegment
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.records.batch import TimestampType, parse_header, set_max_timestamp
from kpybroker.wire.yield_budget import SLICE_UNITS
from tests.support.storage.batches import NOW_MS, append, append_batch, batch, found_by, open_log, read_all
from tests.support.storage.lossy_files import LossyFiles
from tests.support.storage.small_log import SMALL, code_of, new


def test_a_read_is_bounded_but_gives_the_first_batch_whole(log: Log) -> None:
    for _ in range(3):
        append(log, b"x" * 10)
    one = log.segments()[0].size // 3
    sizes = {limit: log.read(0, limit).size for limit in (0, 1, one, one + 1, 2 * one, 1000)}
    assert sizes == {0: one, 1: one, one: one, one + 1: one + 1, 2 * one: 2 * one, 1000: 3 * one}
    cut = log.read(0, 7, min_one_message=False)
    assert (cut.size, cut.first_entry_incomplete) == (7, True)
    assert log.read(0, 0, min_one_message=False).slice is None


def test_a_read_gives_the_batch_that_holds_the_offset(log: Log) -> None:
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    fetched = log.read(1, 1)
    assert (fetched.position, fetched.segment_base_offset) == (0, 0)
    assert read_all(log, 1) == [(1, b"b"), (2, b"c"), (3, b"d")]


def test_a_read_stops_below_the_bound(log: Log) -> None:
    for _ in range(30):
        append(log, b"x" * 10)
    for bound in range(31):
        fetched = log.read(0, 1 << 20, max_offset=bound)
        first = log.segments()[0]
        following = log.segments()[1].base_offset
        if bound == 0:
            assert fetched.slice is None
        else:
            assert fetched.size == first.size * min(bound, following) // following


def test_reads_outside_the_log_are_refused(log: Log) -> None:
    for _ in range(3):
        append(log, b"x")
    log.update_high_watermark(3)
    log.increment_log_start_offset(2)
    assert code_of(lambda: log.read(1, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(lambda: log.read(4, 100)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(3, 100).slice is None


@pytest.mark.parametrize("seed", range(10))
def test_a_read_of_a_recent_append_equals_any_other_read(seed: int) -> None:
    """For any appends and truncations before, any start offset, and any limit of bytes."""
    chance = random.Random(seed)
    log = new()

    def read(offset: int, limit: int, *, min_one: bool) -> tuple[int, ...]:
        found = log.read(offset, limit, min_one_message=min_one)
        if found.slice is not None:
            found.slice.release()
        return found.size, found.segment_base_offset, found.position, found.first_entry_incomplete

    for _ in range(40):
        if chance.random() < 0.85:
            append(log, *[b"x" * chance.randrange(30) for _ in range(chance.choice([1, 3]))])
        else:
            log.truncate_to(max(0, log.log_end_offset - chance.randrange(6)), now_ms=NOW_MS)
        for offset in range(max(0, log.log_end_offset - 12), log.log_end_offset):
            limit, min_one = chance.choice([0, 60, 90, 200, 1000, 1 << 20]), chance.random() < 0.5
            found = read(offset, limit, min_one=min_one)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(LogSegment, "recent_position", lambda _segment, _offset: None)
                assert found == read(offset, limit, min_one=min_one)


def test_a_slice_outlives_deletion_truncation_and_close(tmp_path: Path) -> None:
    log = open_log(local_files(), str(tmp_path / "t-0"), SMALL)
    for number in range(60):
        append(log, b"%04d" % number)
    log.update_high_watermark(60)
    slices = [log.read(offset, 100).slice for offset in (0, 20, 59)]
    before = [piece.read() for piece in slices if piece is not None]
    log.truncate_to(55, now_ms=NOW_MS)
    for number in range(20):
        append(log, b"other %d" % number)
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    for path in log.deletions_due(NOW_MS + 10**9):
        unlink_if_exists(log.files, path)
    log.close()
    assert [piece.read() for piece in slices if piece is not None] == before
    for piece in slices:
        assert piece is not None
        piece.release()
        piece.release()
        with pytest.raises(ValueError, match="released"):
            piece.read()


def test_find_timestamp_finds_the_first_record_at_or_after(log: Log) -> None:
    times = [10, 20, 15, 30, 30, 25, 40]
    for _ in range(3):
        for timestamp in times:
            append(log, b"x" * 20, timestamp=timestamp)
        times = [time + 100 for time in times]
    stamps = [t + 100 * round for round in range(3) for t in [10, 20, 15, 30, 30, 25, 40]]
    for wanted in range(0, 250, 3):
        expected = next((n for n, stamp in enumerate(stamps) if stamp >= wanted), None)
        found = found_by(log.search_timestamp(wanted))
        assert (found and found.offset) == expected
        if found is not None and expected is not None:
            assert found.timestamp == stamps[expected]


def test_find_max_timestamp_is_the_first_record_with_it(log: Log) -> None:
    assert found_by(log.search_max_timestamp()) is None
    for timestamp in (10, 50, 20, 50, 30):
        append(log, b"x" * 100, timestamp=timestamp)
    found = found_by(log.search_max_timestamp())
    assert found == (50, 1, 0)


def test_where_no_record_has_a_time_the_largest_one_is_none(log: Log) -> None:
    append(log, b"a", timestamp=-1)
    append(log, b"b", timestamp=-1)
    assert found_by(log.search_max_timestamp()) == (-1, 0, 0)


def lying_batch(claimed: int, timestamp: int = NOW_MS, **options: Any) -> bytearray:
    """A batch whose header falsely says that it has a record of the time `claimed`."""
    lie = batch(b"x", timestamp=timestamp, **options)
    set_max_timestamp(lie, 0, parse_header(lie), TimestampType.CREATE_TIME, claimed)
    return lie


def test_a_search_continues_after_a_false_timestamp_and_marks_slow_batches() -> None:
    log = open_log(LossyFiles(), "/logs/t-0")
    for lie in (lying_batch(NOW_MS + 9), lying_batch(NOW_MS + 9, codec=Codec.GZIP), batch(bytes(40_000))):
        append_batch(log, lie)
    append(log, b"true", timestamp=NOW_MS + 5)
    steps = list(log.search_timestamp(NOW_MS + 5))
    assert [step is not None and step.is_long for step in steps] == [False, True, False]
    assert found_by(log.search_timestamp(NOW_MS + 5)) == (NOW_MS + 5, 3, 0)
    assert found_by(log.search_max_timestamp()) is None
    (large,) = [step for step in log.search_timestamp(NOW_MS) if step is not None and step.header.base_offset == 2]
    assert large.is_long


def test_a_search_yields_and_sees_the_log_as_it_was(files: LossyFiles) -> None:
    log = open_log(files, "/logs/t-0")
    for _ in range(2 * SLICE_UNITS // HEADER_COST):
        append(log, b"x")
    append_batch(log, lying_batch(NOW_MS + 9))
    append(log, b"true", timestamp=NOW_MS + 5)
    log.flush()  # opens all files
    search = log.search_timestamp(NOW_MS + 5)
    steps = [next(search) for _ in range(2)]
    assert steps == [None, None]
    opened = files.open_count
    log.truncate_to(10, now_ms=NOW_MS)
    steps += list(search)
    assert [step.header.base_offset for step in steps if step is not None] == [1000, 1001]
    assert files.open_count == opened


def test_legacy_offsets_are_segment_starts_newest_first(tmp_path: Path) -> None:
    files = local_files()
    log = open_log(files, str(tmp_path / "t-0"), SMALL)
    for _ in range(20):
        append(log, b"x" * 20)
    bases = [segment.base_offset for segment in log.segments()]
    for number, segment in enumerate(log.segments()):
        files.set_mtime(segment.records.path, 1000 + number)
    assert log.legacy_offsets_before(-1, 100, 10**6) == sorted([*bases, 20], reverse=True)
    assert log.legacy_offsets_before(-1, 1, 10**6) == [20]
    assert log.legacy_offsets_before(-2, 100, 10**6) == [0]
    assert log.legacy_offsets_before(1001, 100, 10**6) == [bases[1], bases[0]]
    assert log.legacy_offsets_before(999, 100, 10**6) == []
