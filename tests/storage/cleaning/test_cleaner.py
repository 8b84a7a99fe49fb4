"""Cleaning a log's files: which segments, how far, and what is written."""

from __future__ import annotations

import pytest

from kpybroker.storage.cleaning.cleaned import remove_leftovers
from kpybroker.storage.cleaning.cleaner import Cleaned, CleanedSegment, Mapped, clean
from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import write_all
from kpybroker.storage.log.log import Log
from kpybroker.storage.segments.overflow import SegmentOverflowError
from kpybroker.wire.constants import INT32_MAX
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.builder import build_batch, build_batch_of
from kpybroker.wire.records.default_record import Record
from tests.support.storage.batches import NOW_MS, append_batch, log_config, open_log
from tests.support.storage.cleaning import clean_log, job_for
from tests.support.storage.keyed_load import all_records
from tests.support.storage.lossy_files import LossyFiles

PATH = "/logs/t-0"
COMPACT = frozenset({"compact"})
CONFIG = log_config(segment_bytes=1000, index_interval_bytes=100, cleanup_policy=COMPACT)


def put(log: Log, *keys: str, value: bytes | None = b"v" * 20, timestamp: int = NOW_MS) -> int:
    """A batch with these keys; its first offset."""
    entries = [(key.encode(), value, timestamp) for key in keys]
    return append_batch(log, build_batch(entries)).first_offset


def log_with(*rounds: str, files: LossyFiles | None = None, config: object = CONFIG) -> Log:
    """A segment for every word, a batch for every letter of it; and the active one."""
    log = open_log(files or LossyFiles(), PATH, config)  # type: ignore[arg-type]
    for word in rounds:
        for letter in word:
            put(log, letter)
        log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


def keys(log: Log) -> str:
    return "".join(f"{record.key.decode() if record.key else ''}{record.offset} " for record in all_records(log))


def test_segments_that_become_small_are_merged() -> None:
    log = log_with("abc", "abd", "abe", "f")
    done = clean_log(log)
    assert done is not None
    assert keys(log) == "c2 d5 a6 b7 e8 f9 "
    assert [segment.base_offset for segment in log.segments()] == [0, 10]
    assert (done.end_offset, done.messages_read, done.messages_written) == (10, 10, 6)
    assert done.bytes_written == log.segments()[0].size
    assert log.log_end_offset == 10


def test_what_does_not_fit_the_map_is_left_for_the_next_cleaning() -> None:
    log = log_with("abc", "abd", "abe", "abcde")
    first = clean_log(log, map_bytes=24 * 4)  # three keys
    assert first is not None
    assert first.end_offset == 3  # a full map takes no other offset of a key either
    assert keys(log).startswith("a0 b1 c2 a3 ")
    rounds = 1
    while clean_log(log, map_bytes=24 * 4) is not None:
        rounds += 1
    assert keys(log) == "a9 b10 c11 d12 e13 "
    assert 2 < rounds < 8


def test_a_second_cleaning_takes_its_keys_from_what_is_new_only() -> None:
    log = log_with("abc")
    clean_log(log)
    for letter in "bd":
        put(log, letter)
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    _, job = job_for(log)
    mapped = next(clean(log.files, job, lambda size: None))
    assert isinstance(mapped, Mapped)
    assert mapped.utilization == pytest.approx(2 / 10_000)
    clean_log(log)
    assert keys(log) == "a0 c2 b3 d4 "


def test_a_batch_larger_than_the_buffer_is_read_whole() -> None:
    log = open_log(LossyFiles(), PATH, log_config(cleanup_policy=COMPACT))
    for n in range(3):
        put(log, *[f"{n % 2} {m}" for m in range(50)], value=b"v" * 100)
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    clean_log(log, io_bytes=70)
    assert [record.offset for record in all_records(log)] == list(range(50, 150))


def test_the_cleaned_segment_is_indexed_and_as_old_as_before() -> None:
    log = open_log(
        LossyFiles(), PATH, log_config(segment_bytes=100_000, index_interval_bytes=100, cleanup_policy=COMPACT)
    )
    for n in range(60):
        put(log, f"{n // 2}", timestamp=NOW_MS + n)
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    log.files.set_mtime(log.segments()[0].records.path, 123_000)
    clean_log(log)
    segment = log.segments()[0]
    assert segment.offset_index.file.entries > 10
    assert segment.time_index.file.entries > 10
    assert segment.last_modified_ms == 123_000
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (NOW_MS + 59, 59)
    for offset in range(60):
        found = segment.translate_offset(offset)
        assert found is not None
        assert next(iter(segment.records.headers(found.position)))[1].last_offset == offset | 1


def test_a_full_index_ends_no_cleaning() -> None:
    """Kafka's cleaner writes fewer entries than appends do, so its segments may have more batches than the index."""
    log = open_log(
        LossyFiles(), PATH, log_config(index_interval_bytes=10, segment_bytes=50_000, cleanup_policy=COMPACT)
    )
    for n in range(60):
        put(log, str(n))
    log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    log.config = log_config(index_interval_bytes=10, segment_index_bytes=100, cleanup_policy=COMPACT)
    clean_log(log)
    assert len(all_records(log)) == 60
    assert log.segments()[0].offset_index.file.entries <= 12


def test_damage_ends_the_cleaning_and_nothing_is_changed(files: LossyFiles) -> None:
    log = log_with("abc", "abd", files=files)
    names_before = sorted(entry.name for entry in files.listdir(PATH))
    file = files.open(f"{PATH}/{3:020d}.log")
    write_all(file, b"\xff", 200)
    file.close()
    with pytest.raises(KafkaError) as caught:
        clean_log(log)
    assert caught.value.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
    remove_leftovers(files, PATH)
    assert sorted(entry.name for entry in files.listdir(PATH)) == names_before


def test_a_segment_that_ends_within_a_batch_is_damaged(files: LossyFiles) -> None:
    log = log_with("abc", "abd", files=files)
    file = files.open(f"{PATH}/{3:020d}.log")
    file.truncate(file.size() - 10)
    file.close()
    with pytest.raises(KafkaError, match="a batch of"):
        clean_log(log)


def test_offsets_that_no_index_can_express_are_refused(files: LossyFiles) -> None:
    """Such a segment is split when its log is loaded (KAFKA-6264)."""
    log = log_with("ab", files=files)
    far = bytes(build_batch_of([Record(INT32_MAX + 2, NOW_MS, b"c", b"v")]))
    file = files.open(f"{PATH}/{0:020d}.log")
    write_all(file, far, file.size())
    file.close()
    with pytest.raises(SegmentOverflowError):
        clean_log(log)


def test_every_read_and_write_is_reported_and_may_end_the_cleaning() -> None:
    log = log_with("abc", "abd")
    _, job = job_for(log)
    sizes: list[int] = []
    list(clean(log.files, job, sizes.append))
    size = sum(segment.size for segment in log.segments())
    kept = log.files.stat(names.segment_file(PATH, 0, ".log") + ".cleaned")
    assert kept is not None
    assert sum(sizes) == 2 * size + kept.size

    def stop(size: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        list(clean(log.files, job, stop))


def test_the_steps_are_reported_in_order() -> None:
    log = log_with("abc", "abd", "aaaaaaa", "bbbbbbb")
    _, job = job_for(log)
    events = list(clean(log.files, job, lambda size: None))
    assert isinstance(events[0], Mapped)
    assert events[1:-1] == [CleanedSegment(0, [0, 3]), CleanedSegment(6, [6]), CleanedSegment(13, [13])]
    assert isinstance(events[-1], Cleaned)
