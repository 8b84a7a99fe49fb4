"""A kill, a power cut or a failing call anywhere in a compaction, its swaps and its checkpoint."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cache
from random import Random

import pytest

from kpybroker.storage.cleaning.cleaned import remove_leftovers
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.log.log import Log
from kpybroker.storage.log.settings import LogSettings
from tests.support.storage.batches import NOW_MS, log_config
from tests.support.storage.cleaning import clean_log
from tests.support.storage.keyed_load import KeyedLoad, all_records, committed_records, latest_values
from tests.support.storage.lossy_files import LossyFiles, PowerCut

CONFIG = log_config(
    segment_bytes=10_000, index_interval_bytes=500, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0
)
SLICE = 9
MAP_BYTES = 24 * 10  # several cleanings
UNFINISHED = (names.CLEANED_SUFFIX, names.SWAP_SUFFIX)


def open_manager(files: LossyFiles) -> LogManager:
    logs = LogManager(files, ["/a"], LogSettings(verification_enabled=False), new_id=lambda: "id")
    logs.load(lambda topic: CONFIG, NOW_MS)
    return logs


def loaded(*, flushed: bool) -> tuple[LossyFiles, LogManager, Log]:
    """A log with some segments to clean; cleaned once before."""
    files = LossyFiles()
    logs = open_manager(files)
    log = logs.get_or_create("t", 0, b"t" * 16, CONFIG, NOW_MS)
    load = KeyedLoad(Random(7), keys=6)
    for _ in range(2):
        clean_log(log, now_ms=NOW_MS, map_bytes=MAP_BYTES)
        for _ in range(45):
            load.step(log)
        load.end_all(log)
        log.roll(load.now_ms)
        log.update_high_watermark(log.log_end_offset)
    if flushed:
        log.flush()
        logs.recovery_point_checkpoint()()
        logs.cleaner_offset_checkpoint()()
    return files, logs, log


def compact(logs: LogManager, log: Log) -> None:
    """Two cleanings as the broker runs them; the second cleans what did not fit into the map of the first."""
    for round_ in range(2):
        clean_log(log, now_ms=NOW_MS + 100_000 * (round_ + 1), map_bytes=MAP_BYTES)
        logs.cleaner_offset_checkpoint()()


def operations(*, flushed: bool) -> tuple[int, int]:
    """The first and the last operation of the compaction."""
    files, logs, log = loaded(flushed=flushed)
    first = files.operations + 1
    compact(logs, log)
    assert files.operations - first > 100
    return first, files.operations


def stop_at(operation: int, error: Callable[[], BaseException]) -> Callable[[int, str, str], None]:
    def stop(number: int, kind: str, path: str) -> None:
        if number == operation:
            raise error()

    return stop


def check_reopened(files: LossyFiles, original: Log) -> None:
    """One consistent log with the same table in it, which can be compacted."""
    everything, committed = all_records(original), committed_records(original)
    logs = open_manager(files)
    log = logs.get("t", 0)
    assert log is not None
    log.update_high_watermark(log.log_end_offset)
    assert not [entry.name for entry in files.listdir(log.directory) if entry.name.endswith(UNFINISHED)]
    kept, kept_committed = all_records(log), committed_records(log)
    assert log.log_end_offset == original.log_end_offset
    assert [record.offset for record in kept] == sorted({record.offset for record in kept})
    assert set(kept) <= set(everything)
    assert set(kept_committed) <= set(committed)
    assert latest_values(kept_committed) == latest_values(committed)
    last = {pid: (entry.producer_epoch, entry.last_sequence) for pid, entry in original.producers.producers.items()}
    assert {pid: (e.producer_epoch, e.last_sequence) for pid, e in log.producers.producers.items()} == last
    compact(logs, log)
    assert latest_values(committed_records(log)) == latest_values(committed)
    logs.shutdown()


@cache
def before(*, flushed: bool) -> Log:
    """The log before the compaction; tests must not change it."""
    return loaded(flushed=flushed)[2]


def stopped(operation: int, *, flushed: bool) -> LossyFiles:
    """A compaction that ended at an operation."""
    files, logs, log = loaded(flushed=flushed)
    files.before_operation = stop_at(operation, PowerCut)
    with pytest.raises(PowerCut):
        compact(logs, log)
    files.before_operation = None
    return files


def places(request: pytest.FixtureRequest, *, flushed: bool) -> tuple[range, Random]:
    """Operations to stop at, all of them or a slice, and the seed of the rest."""
    first, last = operations(flushed=flushed)
    chance = Random(f"{request.config.option.seed} {request.node.name}")
    step = 1 if request.config.option.whole else SLICE
    return range(first + chance.randrange(step), last + 1, step), chance


def test_a_kill_anywhere_leaves_one_whole_log(request: pytest.FixtureRequest) -> None:
    for operation in places(request, flushed=False)[0]:
        check_reopened(stopped(operation, flushed=False).snapshot(), before(flushed=False))


def test_a_power_cut_anywhere_loses_nothing_that_was_flushed(request: pytest.FixtureRequest) -> None:
    """For a disk that keeps the order of name changes: a rename has two, and without the order it is no rename."""
    chosen, chance = places(request, flushed=True)
    for operation in chosen:
        files = stopped(operation, flushed=True)
        check_reopened(files.crash(chance, in_order=True), before(flushed=True))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_call_that_fails_leaves_the_log_as_it_was_or_ends_the_directory(
    number: int, request: pytest.FixtureRequest
) -> None:
    survived = ended = 0
    for operation in places(request, flushed=True)[0]:
        files, logs, log = loaded(flushed=True)
        files.before_operation = stop_at(operation, lambda: OSError(number, os.strerror(number)))
        try:
            compact(logs, log)
        except LogDirError as error:
            logs.take_offline(error.log_dir, error.cause)
            ended += 1
            check_reopened(files.snapshot(), before(flushed=True))
        except OSError:
            survived += 1
            remove_leftovers(files, log.directory)
            assert latest_values(committed_records(log)) == latest_values(committed_records(before(flushed=True)))
            compact(logs, log)
            check_reopened(files.snapshot(), before(flushed=True))
        files.before_operation = None
    assert survived
    assert ended
