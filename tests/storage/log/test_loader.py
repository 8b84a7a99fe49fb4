"""What a directory may hold when it is opened, and how it is loaded (LogLoaderTest)."""

from __future__ import annotations

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import write_file
from kpybroker.storage.log.log import Log
from tests.support.storage.batches import NOW_MS, append, log_config, open_log, read_all
from tests.support.storage.lossy_files import LossyFiles

CONFIG = log_config(segment_bytes=300, index_interval_bytes=80, file_delete_delay_ms=1000)
PATH = "/logs/t-0"


def filled(count: int = 20) -> LossyFiles:
    files = LossyFiles()
    log = open_log(files, PATH, CONFIG)
    for number in range(count):
        append(log, b"%d" % number)
    log.close()
    return files


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments()]


def file_names(files: LossyFiles) -> set[str]:
    return {entry.name for entry in files.listdir(PATH)}


def copy(files: LossyFiles, base: int, suffix: str) -> None:
    """Give a segment's files a second name with a suffix, as a swap does."""
    for kind in (names.LOG_SUFFIX, names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
        path = names.segment_file(PATH, base, kind)
        source = files.open(path)
        write_file(files, path + suffix, source.pread(1 << 20, 0), sync=True)
        source.close()


def test_a_new_log_has_one_empty_segment_with_its_indexes(files: LossyFiles) -> None:
    log = open_log(files, PATH, CONFIG)
    assert bases(log) == [0]
    assert file_names(files) == {f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex"}
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.recovery_point) == (0, 0, 0, 0)


def test_a_log_that_was_only_opened_holds_no_index(files: LossyFiles) -> None:
    """Of many partitions most are idle. What is appended later opens the indexes, and finds them as they are."""
    for number in range(2):
        log = open_log(files, PATH, CONFIG)
        segments = log.segments()
        assert [list(segment._indexes.handles()) for segment in segments] == [[] for _ in segments]
        assert files.open_count == len(segments), "the .log files"
        for _ in range(10):
            append(log, b"x")
        assert len(read_all(log)) == 10 * (number + 1)
        log.close()


def test_a_cleanly_closed_log_needs_no_recovery_and_no_writes_of_data() -> None:
    files = filled()
    before = files.operations
    log = open_log(files, PATH, CONFIG)
    assert log.recovery_point == log.log_end_offset == 20
    assert files.operations == before


def test_temporary_files_are_removed() -> None:
    files = filled()
    for name in ("00000000000000000003.log.deleted", "00000000000000000002.log.cleaned", "x.tmp"):
        write_file(files, f"{PATH}/{name}", b"x", sync=True)
    log = open_log(files, PATH, CONFIG)
    assert len(read_all(log)) == 20
    assert not any(name.endswith((".deleted", ".cleaned", ".tmp")) for name in file_names(files))


def test_an_index_without_a_log_is_removed() -> None:
    files = filled()
    write_file(files, f"{PATH}/00000000000000009999.index", b"", sync=True)
    open_log(files, PATH, CONFIG)
    assert "00000000000000009999.index" not in file_names(files)


def test_an_interrupted_swap_is_finished() -> None:
    files = filled()
    log = open_log(files.snapshot(), PATH, CONFIG)
    first, second, third = bases(log)[:3]
    copy(files, first, names.SWAP_SUFFIX)
    for kind in (names.LOG_SUFFIX, names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX):
        files.unlink(names.segment_file(PATH, first, kind))
    log = open_log(files, PATH, CONFIG)
    assert bases(log)[:3] == [first, second, third]
    assert len(read_all(log)) == 20
    assert not any(name.endswith(names.SWAP_SUFFIX) for name in file_names(files))


def test_segments_in_the_range_of_a_swap_are_replaced() -> None:
    """A compacted segment that replaces two: both are removed, whether marked before or not."""
    files = filled()
    log = open_log(files.snapshot(), PATH, CONFIG)
    first, second, third = bases(log)[:3]
    whole = read_all(log)
    merged = b"".join(segment.records.read(0, segment.size) for segment in log.segments()[:2])
    write_file(files, names.segment_file(PATH, first, names.LOG_SUFFIX) + names.SWAP_SUFFIX, merged, sync=True)
    log = open_log(files, PATH, CONFIG)
    assert bases(log)[:2] == [first, third]
    assert read_all(log) == whole
    assert f"{second:020d}.log" not in file_names(files)


def test_a_swap_that_had_not_begun_is_undone() -> None:
    """A `.cleaned` file at or below a `.swap` one: not all had been renamed."""
    files = filled()
    log = open_log(files.snapshot(), PATH, CONFIG)
    first, second = bases(log)[:2]
    copy(files, first, names.CLEANED_SUFFIX)
    copy(files, second, names.SWAP_SUFFIX)
    log = open_log(files, PATH, CONFIG)
    assert len(read_all(log)) == 20
    assert not any(name.endswith((names.SWAP_SUFFIX, names.CLEANED_SUFFIX)) for name in file_names(files))


def test_a_log_behind_its_start_offset_starts_again_there() -> None:
    files = filled()
    log = open_log(files, PATH, CONFIG, log_start_offset=50)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (50, 50, [50])
    assert append(log, b"x") == 50
    assert log.deletions_due(NOW_MS + 1000) != []


def test_the_start_offset_is_kept_within_a_segment() -> None:
    log = open_log(filled(), PATH, CONFIG, log_start_offset=7)
    assert log.log_start_offset == log.high_watermark == 7
    assert [offset for offset, _ in read_all(log)] == list(range(7, 20))


def test_a_log_marked_for_deletion_is_not_recovered() -> None:
    files = filled()
    files.rename(PATH, "/logs/t-0.abc-delete")
    log = open_log(files, "/logs/t-0.abc-delete", CONFIG, log_start_offset=7, had_clean_shutdown=False)
    assert log.partition == ("t", 0)
    assert log.log_start_offset == log.high_watermark == log.log_end_offset == 7
    log.close_handlers()


def test_a_log_without_snapshots_after_a_clean_stop_gets_empty_ones() -> None:
    """What an upgrade from before snapshots looks like: no scan of the whole log."""
    files = filled()
    for name in file_names(files):
        if name.endswith(names.SNAPSHOT_SUFFIX):
            files.unlink(f"{PATH}/{name}")
    log = open_log(files, PATH, CONFIG)
    assert log.snapshots.offsets == (*bases(log)[-2:], 20)


def test_preallocated_space_is_no_data(files: LossyFiles) -> None:
    config = log_config(segment_bytes=300, preallocate=True)
    log = open_log(files, PATH, config)
    append(log, b"a")
    assert log.size < 300
    killed = files.snapshot()
    assert read_all(open_log(killed, PATH, config, had_clean_shutdown=False)) == [(0, b"a")]
    log.close()
    stat = files.stat(f"{PATH}/{0:020d}.log")
    assert stat is not None
    assert stat.size < 100
    assert read_all(open_log(files, PATH, config)) == [(0, b"a")]


def test_a_leftover_file_of_an_interrupted_roll_is_replaced() -> None:
    files = filled(3)
    write_file(files, names.segment_file(PATH, 4, names.INDEX_SUFFIX), b"12345678", sync=True)
    write_file(files, names.segment_file(PATH, 4, names.TXN_INDEX_SUFFIX), b"1", sync=True)
    log = open_log(files, PATH, CONFIG)
    append(log, b"x")
    write_file(files, names.segment_file(PATH, 4, names.TIME_INDEX_SUFFIX), b"123456789012", sync=True)
    log.roll(NOW_MS)
    append(log, b"y")
    assert len(read_all(log)) == 5
