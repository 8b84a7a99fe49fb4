"""Splitting an overflowed segment, and what a crash within the swap leaves (LogSegmentTest, KAFKA-6264)."""

from __future__ import annotations

import pytest

from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import make_dirs, write_file
from kpybroker.wire.constants import INT32_MAX
from tests.support.storage.batches import batch, log_config, open_log, read_all
from tests.support.storage.lossy_files import LossyFiles, PowerCut

PATH = "/logs/t-0"
OFFSETS = [0, 5, INT32_MAX, INT32_MAX + 1, INT32_MAX + 9, 2 * INT32_MAX + 40]


def overflowed() -> LossyFiles:
    """A segment that spans more offsets than its index can express, as cleaners before 1.1.1 could leave it."""
    files = LossyFiles()
    make_dirs(files, PATH)
    data = b"".join(bytes(batch(b"%d" % offset, base_offset=offset)) for offset in OFFSETS)
    write_file(files, names.segment_file(PATH, 0, names.LOG_SUFFIX), data, sync=True)
    files.sync_dir(PATH)
    return files


EXPECTED = [(offset, b"%d" % offset) for offset in OFFSETS]
CONFIG = log_config(index_interval_bytes=80)


@pytest.mark.parametrize("clean", [True, False])
def test_an_overflowed_segment_is_split(clean: bool) -> None:
    files = overflowed()
    log = open_log(files, PATH, CONFIG, had_clean_shutdown=clean, cleaner_offset=2**40)
    assert [segment.base_offset for segment in log.segments()] == [0, INT32_MAX + 1, 2 * INT32_MAX + 40]
    assert read_all(log) == EXPECTED
    log.close()
    log = open_log(files, PATH, CONFIG)
    assert read_all(log) == EXPECTED


def test_a_crash_at_any_operation_of_a_split_leaves_one_whole_log() -> None:
    probe = overflowed()
    before = probe.operations
    open_log(probe, PATH, CONFIG, had_clean_shutdown=False, cleaner_offset=2**40)
    for operation in range(before + 1, probe.operations + 1):
        files = overflowed()

        def stop(number: int, kind: str, path: str, at: int = operation) -> None:
            if number == at:
                raise PowerCut

        files.before_operation = stop
        with pytest.raises(PowerCut):
            open_log(files, PATH, CONFIG, had_clean_shutdown=False, cleaner_offset=2**40)
        files = files.snapshot()
        log = open_log(files, PATH, CONFIG, had_clean_shutdown=False, cleaner_offset=2**40)
        assert read_all(log) == EXPECTED
