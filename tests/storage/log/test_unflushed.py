"""The leader epochs of a log in their file: written when a start would otherwise read others."""

from __future__ import annotations

import errno

import pytest

from kpybroker.core.replication.leader_epochs import EpochEntry, LeaderEpochCache
from kpybroker.storage.disk.files import read_file
from kpybroker.storage.log.unflushed import EpochCheckpoint
from tests.support.storage.batches import NOW_MS, append, open_log
from tests.support.storage.lossy_files import LossyFiles

PATH = "/leader-epoch-checkpoint"


def cache(*entries: tuple[int, int]) -> LeaderEpochCache:
    return LeaderEpochCache(EpochEntry(*entry) for entry in entries)


def test_an_epoch_is_written_once_it_has_a_record(files: LossyFiles) -> None:
    log = open_log(files, "/logs/t-0")
    path = log.epoch_checkpoint.path
    log.assign_epoch(0, 0)
    log.flush()
    assert read_file(files, path) is None
    append(log, b"a", leader_epoch=0)
    log.flush()
    assert read_file(files, path) == b"0\n1\n0 0\n"
    log.assign_epoch(1, 1)
    log.flush()
    assert read_file(files, path) == b"0\n1\n0 0\n"
    append(log, b"b", leader_epoch=1)
    log.flush()
    assert read_file(files, path) == b"0\n2\n0 0\n1 1\n"


def test_an_epoch_that_was_cut_off_is_gone_from_the_file_when_the_log_goes_on_without_it(files: LossyFiles) -> None:
    log = open_log(files, "/logs/t-0")
    append(log, *[b"x"] * 5)
    append(log, b"y", leader_epoch=1)
    log.flush()
    log.truncate_to(5, now_ms=NOW_MS)
    log.flush()
    append(log, b"z")
    log.close()
    assert read_file(files, log.epoch_checkpoint.path) == b"0\n1\n0 0\n"


def test_epochs_that_come_back_are_captured_after_others_were() -> None:
    """Else an older capture, whose write a thread has not begun, would be the last one in the file."""
    file = EpochCheckpoint("", cache((0, 0), (1, 7)).entries)
    changed = cache((0, 0), (1, 7))
    changed.truncate_from_end(6)
    assert file.capture(changed, 6) is None, "loading removes what begins at the end"
    assert file.capture(changed, 9) == (1, b"0\n1\n0 0\n")
    changed.assign(1, 7)
    assert file.capture(changed, 9) == (2, b"0\n2\n0 0\n1 7\n")


def test_what_could_not_be_written_is_captured_again(files: LossyFiles) -> None:
    file = EpochCheckpoint("", ())
    epochs = cache()
    epochs.assign(4, 0)
    captured = file.capture(epochs, 3)
    assert captured is not None
    assert file.capture(epochs, 3) is None
    files.free_bytes = 0
    with pytest.raises(OSError, check=lambda error: error.errno == errno.ENOSPC):
        file.write(files, *captured)
    files.free_bytes = None
    again = file.capture(epochs, 3)
    assert again is not None
    file.write(files, *again)
    assert read_file(files, PATH) == b"0\n1\n4 0\n"
    file.write(files, captured[0], b"older")
    assert read_file(files, PATH) == b"0\n1\n4 0\n"
