"""Offset checkpoints of a directory: their content, and that they are whole after any crash."""

from __future__ import annotations

import random

import pytest

from kpybroker.storage.directories.log_dir import LogDirectory
from kpybroker.storage.directories.offset_checkpoints import OFFSET_OF, checkpoint_job
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.log.log import Log
from tests.support.storage.batches import append, open_log
from tests.support.storage.lossy_files import LossyFiles, failing


def offsets(files: LossyFiles, name: str, log_dir: str = "/a") -> dict[object, int]:
    path = f"{log_dir}/{name}"
    return dict(decode_offsets(read_file(files, path) or b"", path))


def log_with(files: LossyFiles, directory: str, records: int) -> Log:
    log = open_log(files, directory)
    for _ in range(records):
        append(log, b"x")
    return log


def test_each_checkpoint_has_its_offset_of_every_log_of_its_directory(files: LossyFiles) -> None:
    directories = [LogDirectory(files, path) for path in ("/a", "/b", "/c")]
    cleaned, moving, other = (log_with(files, path, 4) for path in ("/a/t-0", "/a/u-1.id-future", "/b/v-0"))
    for log in (cleaned, moving, other):
        log.cleaner_offset = 1
        log.update_high_watermark(3)
    cleaned.flush()
    cleaned.increment_log_start_offset(2)
    for name in OFFSET_OF:
        checkpoint_job(name, directories[:2], [cleaned, moving, other, log_with(files, "/c/w-0", 1)])()
    assert {name: offsets(files, name) for name in OFFSET_OF} == {
        names.RECOVERY_POINT_CHECKPOINT: {("t", 0): 4, ("u", 1): 0},
        names.LOG_START_OFFSET_CHECKPOINT: {("t", 0): 2},  # others start at their first segment
        names.HIGH_WATERMARK_CHECKPOINT: {("t", 0): 3, ("u", 1): 3},
        names.CLEANER_OFFSET_CHECKPOINT: {("t", 0): 1},  # a future log is not cleaned
    }
    assert offsets(files, names.HIGH_WATERMARK_CHECKPOINT, "/b") == {("v", 0): 3}
    assert read_file(files, f"/c/{names.HIGH_WATERMARK_CHECKPOINT}") is None


def test_a_checkpoint_is_left_alone_where_nothing_changed(files: LossyFiles) -> None:
    directory, log = LogDirectory(files, "/a"), log_with(files, "/a/t-0", 1)
    log.cleaner_offset = 1
    for name in OFFSET_OF:
        checkpoint_job(name, [directory], [log])()
        before = files.operations
        checkpoint_job(name, [directory], [log])()
        assert files.operations == before
        checkpoint_job(name, [directory], [log], is_last=True)()
        assert (files.operations == before) == (name == names.CLEANER_OFFSET_CHECKPOINT)


def test_the_first_checkpoint_of_a_life_is_written_though_the_file_has_the_same(files: LossyFiles) -> None:
    """What the life before has renamed may not be durable."""
    directory, log = LogDirectory(files, "/a"), log_with(files, "/a/t-0", 1)
    checkpoint_job(names.HIGH_WATERMARK_CHECKPOINT, [directory], [log])()
    directory.close()
    again = LogDirectory(files, "/a")
    assert again.read_offsets(names.HIGH_WATERMARK_CHECKPOINT) == {("t", 0): log.high_watermark}
    before = files.operations
    checkpoint_job(names.HIGH_WATERMARK_CHECKPOINT, [again], [log])()
    assert files.operations > before


def test_log_starts_are_written_again_while_a_power_cut_may_bring_removed_segments_back(files: LossyFiles) -> None:
    directory, log = LogDirectory(files, "/a"), log_with(files, "/a/t-0", 1)
    for name in (names.HIGH_WATERMARK_CHECKPOINT, names.LOG_START_OFFSET_CHECKPOINT):
        checkpoint_job(name, [directory], [log])()
        log.unflushed.has_renamed = True
        before = files.operations
        checkpoint_job(name, [directory], [log])()
        assert (files.operations > before) == (name == names.LOG_START_OFFSET_CHECKPOINT)
        log.prepare_flush().run()
        before = files.operations
        checkpoint_job(name, [directory], [log])()
        assert files.operations == before


def test_offsets_that_went_back_are_written_after_a_capture_that_is_not_written_yet(files: LossyFiles) -> None:
    directory, log = LogDirectory(files, "/a"), log_with(files, "/a/t-0", 4)
    for high_watermark in (1, 3):
        log.update_high_watermark(high_watermark)
        late = checkpoint_job(names.HIGH_WATERMARK_CHECKPOINT, [directory], [log])
        if high_watermark == 1:
            late()
    log.update_high_watermark(1)
    checkpoint_job(names.HIGH_WATERMARK_CHECKPOINT, [directory], [log])()
    late()
    assert offsets(files, names.HIGH_WATERMARK_CHECKPOINT) == {("t", 0): 1}


def test_a_failed_checkpoint_names_its_directory_and_affects_no_other(files: LossyFiles) -> None:
    directories = [LogDirectory(files, path) for path in ("/a", "/b")]
    job = checkpoint_job(names.RECOVERY_POINT_CHECKPOINT, directories, [log_with(files, "/b/t-0", 1)])
    files.before_operation = failing("/a/recovery")
    with pytest.raises(LogDirError, check=lambda error: error.log_dir == "/a"):
        job()
    assert offsets(files, names.RECOVERY_POINT_CHECKPOINT, "/b") == {("t", 0): 0}


def test_checkpoints_survive_a_power_cut_at_any_operation() -> None:
    """The old content or the new one, never anything else."""
    for operation in range(1, 30):
        files = LossyFiles()
        directory, log = LogDirectory(files, "/a"), log_with(files, "/a/t-0", 1)
        log.flush()
        checkpoint_job(names.RECOVERY_POINT_CHECKPOINT, [directory], [log])()
        append(log, b"y")
        log.flush()
        start = files.operations

        def stop(number: int, kind: str, path: str, at: int = start + operation) -> None:
            if number == at:
                raise KeyboardInterrupt

        files.before_operation = stop
        done = False
        try:
            checkpoint_job(names.RECOVERY_POINT_CHECKPOINT, [directory], [log])()
            done = True
        except KeyboardInterrupt:
            pass
        files.before_operation = None
        after = files.crash(random.Random(operation))
        found = offsets(after, names.RECOVERY_POINT_CHECKPOINT)
        assert found == {("t", 0): 2} if done else found in ({("t", 0): 1}, {("t", 0): 2})
        if done:
            break
    assert done
