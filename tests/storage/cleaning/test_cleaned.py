"""The log's side of a cleaning: jobs, swaps, what aborts a cleaning, and the checkpoint."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.cleaning.cleaned import remove_leftovers, swap_in
from kpybroker.storage.cleaning.cleaner import CleanedSegment, clean
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import read_file, write_file
from kpybroker.storage.log.log import Log
from kpybroker.wire.records.builder import BatchFields, build_batch
from tests.support.storage.batches import NOW_MS, append_batch, log_config, read_all
from tests.support.storage.cleaning import clean_log, job_for
from tests.support.storage.lossy_files import LossyFiles

COMPACT = log_config(segment_bytes=1000, cleanup_policy=frozenset({"compact"}), file_delete_delay_ms=1000)
BOTH = log_config(segment_bytes=1000, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=10)
DELETE = log_config(segment_bytes=1000)


def open_manager(files: LossyFiles) -> LogManager:
    logs = LogManager(files, ["/a"], new_id=lambda: "id")
    logs.load(lambda topic: COMPACT, NOW_MS)
    return logs


def dirty_log(logs: LogManager, topic: str = "t", *, rounds: int = 3) -> Log:
    """Segments 0, 3, 6... of three keys each, and the active one."""
    log = logs.get_or_create(topic, 0, topic.encode() * 16, COMPACT, NOW_MS)
    for number in range(rounds):
        for key in b"abc":
            fields = BatchFields(producer_id=key, producer_epoch=0, base_sequence=number)
            append_batch(log, build_batch([(b"%d" % key, b"v%d" % number, NOW_MS)], fields))
        log.roll(NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    return log


def file_names(files: LossyFiles, log: Log) -> set[str]:
    return {entry.name for entry in files.listdir(log.directory)}


def cleaned_files(log: Log) -> list[CleanedSegment]:
    """The cleaner has run; nothing is swapped in yet."""
    log.cleaning = lambda: None
    events = list(clean(log.files, job_for(log)[1], lambda size: None))
    return [event for event in events if isinstance(event, CleanedSegment)]


def test_a_job_lists_the_producers_whose_last_record_it_cleans() -> None:
    logs = open_manager(LossyFiles())
    log = dirty_log(logs)
    append_batch(
        log, build_batch([(b"k", b"v", NOW_MS)], BatchFields(producer_id=97, producer_epoch=0, base_sequence=3))
    )
    log.update_high_watermark(log.log_end_offset)
    target, job = job_for(log)
    assert (job.first_dirty_offset, job.first_uncleanable_offset, job.base_offsets) == (0, 9, [0, 3, 6, 9])
    assert sorted(job.producers) == [(98, 7, 0), (99, 8, 0)]
    assert target.cleanable_ratio == 1.0


def test_after_a_swap_the_log_reads_the_new_segment_and_drops_the_old_ones_later(files: LossyFiles) -> None:
    log = dirty_log(open_manager(files))
    reader = log.read(0, 10_000)
    assert reader.slice is not None
    assert log.read(1, 10_000, max_offset=2).size > 0  # caches the position of offset 2
    (event,) = cleaned_files(log)
    assert event == CleanedSegment(0, [0, 3, 6])
    swap_in(log, event, NOW_MS)()
    assert read_all(log) == [(6, b"v2"), (7, b"v2"), (8, b"v2")]
    assert log.read(7, 10_000, max_offset=8).size > 0
    assert len(reader.slice.read()) == reader.size  # still the old bytes
    reader.slice.release()
    present = file_names(files, log)
    assert "00000000000000000003.log" not in present
    assert "00000000000000000003.log.deleted" in present
    assert "00000000000000000006.snapshot" not in present  # of a segment that was replaced
    assert "00000000000000000009.snapshot" in present
    assert log.deletions_due(NOW_MS) == []
    for path in log.deletions_due(NOW_MS + 1000):
        if files.stat(path) is not None:
            files.unlink(path)
    assert not [name for name in file_names(files, log) if name.endswith(names.DELETED_SUFFIX)]


def test_a_segment_of_a_cancelled_cleaning_is_never_swapped_in() -> None:
    log = dirty_log(open_manager(LossyFiles()))
    (event,) = cleaned_files(log)
    log.abort_cleaning()
    with pytest.raises(AssertionError, match=r"of a cleaning of .* that was cancelled"):
        swap_in(log, event, NOW_MS)
    assert read_all(log)[0] == (0, b"v0")


def test_a_flush_in_progress_is_not_disturbed() -> None:
    log = dirty_log(open_manager(LossyFiles()))
    job = log.prepare_flush()
    (event,) = cleaned_files(log)
    swap_in(log, event, NOW_MS)()
    job.run()
    job.complete()
    assert log.recovery_point == 9
    log.flush()
    assert read_all(log) == [(6, b"v2"), (7, b"v2"), (8, b"v2")]


def test_a_swap_that_fails_is_the_end_of_the_directory(files: LossyFiles) -> None:
    log = dirty_log(open_manager(files))
    (event,) = cleaned_files(log)

    def fail(number: int, kind: str, path: str) -> None:
        if kind == "rename" and path.endswith(names.SWAP_SUFFIX):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    files.before_operation = fail
    with pytest.raises(LogDirError):
        swap_in(log, event, NOW_MS)


def test_a_directory_that_cannot_be_synced_is_failed_and_one_that_is_gone_is_not(files: LossyFiles) -> None:
    logs = open_manager(files)
    log = dirty_log(logs)
    sync = swap_in(log, cleaned_files(log)[0], NOW_MS)

    def fail(number: int, kind: str, path: str) -> None:
        if kind == "sync_dir":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    files.before_operation = fail
    with pytest.raises(LogDirError):
        sync()
    files.before_operation = None
    logs.delete("t", 0, NOW_MS)
    sync()


@pytest.mark.parametrize(
    "change",
    [
        lambda logs, log: log.truncate_to(4, now_ms=NOW_MS),
        lambda logs, log: log.truncate_fully_and_start_at(20, now_ms=NOW_MS),
        lambda logs, log: logs.delete("t", 0, NOW_MS),
        lambda logs, log: logs.take_offline("/a", "gone"),
        lambda logs, log: log.update_config(DELETE),
        lambda logs, log: log.close(),
    ],
)
def test_a_change_of_the_segments_aborts_the_cleaning(change: Callable[[LogManager, Log], object]) -> None:
    logs = open_manager(LossyFiles())
    log = dirty_log(logs)
    aborted: list[bool] = []
    log.cleaning = lambda: aborted.append(True)
    change(logs, log)
    assert aborted == [True]
    assert log.cleaning is None


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log.truncate_to(10, now_ms=NOW_MS),  # in the active segment, which is never cleaned
        lambda log: log.update_config(BOTH),
        lambda log: log.increment_log_start_offset(4),
        lambda log: log.roll(NOW_MS),
        lambda log: log.flush(),
    ],
)
def test_other_changes_do_not_abort_the_cleaning(change: Callable[[Log], object]) -> None:
    log = dirty_log(open_manager(LossyFiles()))
    append_batch(log, build_batch([(b"k", b"v", NOW_MS), (b"k", b"v", NOW_MS)]))
    log.update_high_watermark(log.log_end_offset)
    events = cleaned_files(log)
    log.cleaning = lambda: pytest.fail("called off")
    change(log)
    assert log.cleaning is not None
    swap_in(log, events[0], NOW_MS)
    assert read_all(log, 6)[:3] == [(6, b"v2"), (7, b"v2"), (8, b"v2")]
    log.cleaning = None


def test_retention_waits_for_the_cleaning() -> None:
    logs = open_manager(LossyFiles())
    log = dirty_log(logs)
    log.update_config(BOTH)
    log.cleaning = lambda: None
    assert sum(logs.cleanup_logs(NOW_MS + 1000)) == 0
    log.cleaning = None
    assert sum(logs.cleanup_logs(NOW_MS + 1000)) == 3


# --- the checkpoint


def checkpoint(files: LossyFiles) -> dict[TopicPartition, int]:
    path = f"/a/{names.CLEANER_OFFSET_CHECKPOINT}"
    return decode_offsets(read_file(files, path) or b"", path)


def test_the_checkpoint_survives_a_restart_and_goes_with_its_log(files: LossyFiles) -> None:
    logs = open_manager(files)
    first, second = dirty_log(logs), dirty_log(logs, "u")
    assert first.cleaner_offset is None
    clean_log(first)
    clean_log(second)
    logs.cleaner_offset_checkpoint()()
    assert checkpoint(files) == {("t", 0): 9, ("u", 0): 9}
    logs.shutdown()
    logs = open_manager(files)
    found = [log.cleaner_offset for log in logs]
    assert found == [9, 9]
    logs.delete("t", 0, NOW_MS)
    logs.cleaner_offset_checkpoint()()
    assert checkpoint(files) == {("u", 0): 9}


def test_nothing_is_written_where_nothing_has_changed(files: LossyFiles) -> None:
    logs = open_manager(files)
    log = dirty_log(logs)
    logs.cleaner_offset_checkpoint()()
    assert files.stat(f"/a/{names.CLEANER_OFFSET_CHECKPOINT}") is None
    clean_log(log)
    logs.cleaner_offset_checkpoint()()
    before = files.operations
    logs.cleaner_offset_checkpoint()()
    assert files.operations == before


def test_an_older_capture_does_not_overwrite_a_newer_one(files: LossyFiles) -> None:
    logs = open_manager(files)
    log = dirty_log(logs)
    log.cleaner_offset = 9
    older = logs.cleaner_offset_checkpoint()
    log.truncate_to(4, now_ms=NOW_MS)
    newer = logs.cleaner_offset_checkpoint()
    newer()
    older()
    assert checkpoint(files) == {("t", 0): 3}


def test_what_could_not_be_written_is_written_the_next_time(files: LossyFiles) -> None:
    logs = open_manager(files)
    clean_log(dirty_log(logs))
    files.free_bytes = 0
    logs.cleaner_offset_checkpoint()()
    files.free_bytes = None
    assert checkpoint(files) == {}
    logs.cleaner_offset_checkpoint()()
    assert checkpoint(files) == {("t", 0): 9}


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (lambda log: log.truncate_to(4, now_ms=NOW_MS), 3),
        (lambda log: log.truncate_to(9, now_ms=NOW_MS), 9),
        (lambda log: log.truncate_fully_and_start_at(5, now_ms=NOW_MS), 5),
        (lambda log: log.truncate_fully_and_start_at(50, now_ms=NOW_MS), 9),
    ],
)
def test_a_truncation_leaves_nothing_clean_that_the_active_segment_holds(
    cut: Callable[[Log], object], expected: int
) -> None:
    log = dirty_log(open_manager(LossyFiles()))
    log.cleaner_offset = 9
    cut(log)
    assert log.cleaner_offset == expected


def test_a_segment_of_a_compacted_topic_may_end_early_without_being_taken_for_damaged(files: LossyFiles) -> None:
    """A crash after a swap and before the checkpoint: the recovery must not take the gap for a lost end."""
    logs = open_manager(files)
    log = dirty_log(logs)
    log.update_config(log_config(segment_bytes=200, cleanup_policy=frozenset({"compact"})))
    for event in cleaned_files(log):
        swap_in(log, event, NOW_MS)()
    assert len(log.segments()) > 2
    expected = read_all(log)
    found = open_manager(files.snapshot()).get("t", 0)
    assert found is not None
    assert read_all(found) == expected


def test_leftovers_are_removed_and_nothing_else(files: LossyFiles) -> None:
    log = dirty_log(open_manager(files))
    before = file_names(files, log)
    cleaned_files(log)
    assert file_names(files, log) > before
    remove_leftovers(files, log.directory)
    assert file_names(files, log) == before
    remove_leftovers(files, "/a/nowhere")
    write_file(files, f"{log.directory}/other.swap", b"", sync=False)
    remove_leftovers(files, log.directory)
    assert "other.swap" in file_names(files, log)
