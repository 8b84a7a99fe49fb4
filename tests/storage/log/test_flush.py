"""Flush jobs: captured on the loop, run in a thread, completed on the loop."""

from __future__ import annotations

import errno
import random
import threading
from pathlib import Path

import pytest

from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.disk.local_files import local_files
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import NOW_MS, append, log_config, open_log, read_all
from tests.support.storage.lossy_files import LossyFiles

PATH = "/logs/t-0"


def test_the_recovery_point_moves_when_a_job_completes() -> None:
    log = open_log(LossyFiles(), PATH)
    append(log, b"a")
    job = log.prepare_flush()
    append(log, b"b")
    job.run()
    assert log.recovery_point == 0
    job.complete()
    assert (log.recovery_point, log.has_unflushed) == (1, True)
    log.flush()
    assert (log.recovery_point, log.has_unflushed) == (2, False)


def test_a_job_syncs_what_is_dirty_and_nothing_else(files: LossyFiles) -> None:
    log = open_log(files, PATH, log_config(index_interval_bytes=0))
    synced: list[str] = []

    def note(number: int, kind: str, path: str) -> None:
        if kind.startswith("sync"):
            synced.append(path.rpartition("/")[2])

    files.before_operation = note
    append(log, b"a")
    append(log, b"b")
    log.assign_topic_id(b"i" * 16)
    log.flush()
    first = f"{0:020d}"
    assert set(synced) == {
        f"{first}.log",
        f"{first}.index",
        f"{first}.timeindex",
        names.PARTITION_METADATA,
        f"{names.LEADER_EPOCH_CHECKPOINT}.tmp",
        "t-0",
        "logs",
    }
    synced.clear()
    append(log, b"c", timestamp=NOW_MS)
    log.flush()
    assert set(synced) == {f"{first}.log", f"{first}.index"}
    synced.clear()
    log.flush()
    assert synced == []


def test_a_rolled_segment_is_flushed_with_its_indexes_and_snapshot(files: LossyFiles) -> None:
    log = open_log(files, PATH, log_config(segment_bytes=200))
    for _ in range(5):
        append(log, b"x" * 40, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset)
    assert log.unflushed.rolled
    log.flush()
    assert not log.unflushed.rolled
    durable = files.crash(random.Random(0))
    again = open_log(durable, PATH, log_config(segment_bytes=200), had_clean_shutdown=False, recovery_point=5)
    assert len(read_all(again)) == 5


def test_a_job_holds_the_files_it_syncs(files: LossyFiles) -> None:
    log = open_log(files, PATH)
    append(log, b"a")
    job = log.prepare_flush()
    log.truncate_fully_and_start_at(0, now_ms=NOW_MS)
    job.run()
    job.complete()


def test_a_truncation_during_a_flush_keeps_the_recovery_point() -> None:
    log = open_log(LossyFiles(), PATH)
    for _ in range(5):
        append(log, b"a")
    job = log.prepare_flush()
    log.truncate_to(2, now_ms=NOW_MS)
    for _ in range(9):
        append(log, b"b")
    job.run()
    job.complete()
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 11


def test_a_failed_sync_ends_the_directory_and_is_not_retried(files: LossyFiles) -> None:
    log = open_log(files, PATH)
    append(log, b"a")
    calls = []

    def fail(number: int, kind: str, path: str) -> None:
        if kind == "sync":
            calls.append(path)
            raise OSError(errno.EIO, "I/O error")

    files.before_operation = fail
    job = log.prepare_flush()
    job.run()
    assert log.recovery_point == 0
    with pytest.raises(LogDirError, check=lambda error: error.log_dir == "/logs"):
        job.complete()
    assert len(calls) == 1
    log.close_handlers()
    assert files.open_count == 0


def test_index_entries_that_find_no_space_keep_the_recovery_point(files: LossyFiles) -> None:
    log = open_log(files, PATH, log_config(index_interval_bytes=0))
    append(log, b"a")
    append(log, b"b")

    def fill(number: int, kind: str, path: str) -> None:
        if kind == "pwrite" and path.endswith("index"):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    files.before_operation = fill
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.KAFKA_STORAGE_ERROR):
        log.flush()
    append(log, b"c")
    assert (log.recovery_point, log.log_end_offset) == (0, 3)
    files.before_operation = None
    log.flush()
    assert log.recovery_point == 3
    assert len(read_file(files, f"{PATH}/{0:020d}.index") or b"") == 2 * 8
    log.close()


def test_an_older_capture_of_the_epochs_does_not_replace_a_newer_one(files: LossyFiles) -> None:
    log = open_log(files, PATH)
    append(log, b"a", leader_epoch=1)
    older = log.prepare_flush()
    append(log, b"b", leader_epoch=2)
    newer = log.prepare_flush()
    for job in (newer, older):
        job.run()
        job.complete()
    assert read_file(files, log.epoch_checkpoint.path) == b"0\n2\n1 0\n2 1\n"
    assert log.recovery_point == 2


def test_a_directory_renamed_for_deletion_during_a_flush_is_no_error(files: LossyFiles) -> None:
    log = open_log(files, PATH)
    append(log, b"a")
    log.assign_topic_id(b"i" * 16)
    job = log.prepare_flush()
    log.rename_directory("t-0.id-delete")
    job.run()
    job.complete()
    log.close_handlers()


def test_jobs_run_in_threads(tmp_path: Path) -> None:
    log = open_log(local_files(), str(tmp_path / "t-0"))
    for _ in range(20):
        append(log, b"a", leader_epoch=log.log_end_offset)
        job = log.prepare_flush()
        thread = threading.Thread(target=job.run)
        thread.start()
        append(log, b"b", leader_epoch=log.log_end_offset)
        thread.join()
        job.complete()
    assert log.recovery_point == 39
    log.close()
