"""What a clean stop syncs: what has changed and nothing else, and much of it at once."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.directories import closing
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk import names
from kpybroker.storage.disk.files import read_file
from tests.support.storage.batches import NOW_MS, append, log_config, read_all
from tests.support.storage.lossy_files import LossyFiles, failing

CONFIG = log_config()
MANY = closing.SYNCED_EACH_MAX + 20
SYNCS = ("sync", "sync_dir", "sync_all")


def opened(files: LossyFiles) -> LogManager:
    manager = LogManager(files, ["/a"], new_id=lambda: "id")
    manager.load(lambda topic: CONFIG, NOW_MS)
    return manager


def create(manager: LogManager, partitions: Iterable[int]) -> None:
    """As LeaderAndIsr does for a new topic."""
    for partition in partitions:
        manager.get_or_create("t", partition, b"t" * 16, CONFIG, NOW_MS)
    elect(manager, 0)


def elect(manager: LogManager, leader_epoch: int) -> None:
    for log in manager:
        log.assign_epoch(leader_epoch, log.log_end_offset)


def write(manager: LogManager, partitions: Iterable[int], leader_epoch: int = 0) -> None:
    for partition in partitions:
        log = manager.get("t", partition)
        assert log is not None
        append(log, b"x%d" % partition, leader_epoch=leader_epoch, producer_id=1, producer_epoch=0, base_sequence=0)


def shut_down(manager: LogManager, files: LossyFiles) -> list[tuple[str, str]]:
    """Stop; the operations that this took, of what kind and on which path."""
    seen: list[tuple[str, str]] = []
    files.before_operation = lambda number, kind, path: seen.append((kind, path))
    manager.shutdown()
    files.before_operation = None
    return seen


def kinds(operations: Iterable[tuple[str, str]]) -> Counter[str]:
    return Counter(kind for kind, _ in operations)


def synced_partitions(operations: Iterable[tuple[str, str]]) -> set[str]:
    """The directories of partitions in which something was synced."""
    paths = [path for kind, path in operations if kind in SYNCS]
    return {path.split("/")[2] for path in paths if path.startswith("/a/t-")}


def is_marked_clean(files: LossyFiles) -> bool:
    return read_file(files, f"/a/{names.CLEAN_SHUTDOWN}") is not None


def only(kind: str, prefix: str, code: int = errno.EIO) -> Callable[[int, str, str], None]:
    """For `before_operation`: one kind of operation fails below a path."""

    def fail(number: int, found: str, path: str) -> None:
        if found == kind and path.startswith(prefix):
            raise OSError(code, os.strerror(code), path)

    return fail


def test_new_partitions_without_records_cost_a_stop_no_operation_each(files: LossyFiles) -> None:
    taken = []
    for count in (MANY, 3 * MANY):
        files = LossyFiles()
        files.syncs_all = True
        manager = opened(files)
        create(manager, range(count))
        taken.append(kinds(shut_down(manager, files)))
        assert is_marked_clean(files)
    assert taken[0] == taken[1]
    assert taken[0]["sync_all"] == 1


@pytest.mark.parametrize("syncs_all", [True, False])
def test_a_stop_after_elections_alone_syncs_no_partition(files: LossyFiles, syncs_all: bool) -> None:
    files.syncs_all = syncs_all
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(0, MANY, 2))
    manager.shutdown()
    for leader_epoch in (1, 2):
        manager = opened(files)
        elect(manager, leader_epoch)
        operations = shut_down(manager, files)
        assert synced_partitions(operations) == set()
        assert kinds(operations)["sync_all"] == 0


def test_without_a_sync_of_everything_each_new_partition_needs_two(files: LossyFiles) -> None:
    manager = opened(files)
    create(manager, range(MANY))
    operations = shut_down(manager, files)
    syncs = Counter(path for kind, path in operations if kind in SYNCS and path.startswith("/a/t-"))
    assert set(syncs) == {f"/a/t-{n}{name}" for n in range(MANY) for name in ("", f"/{names.PARTITION_METADATA}")}
    assert set(syncs.values()) == {1}
    others = Counter(path for kind, path in operations if kind in SYNCS and not path.startswith("/a/t-"))
    assert others["/a"] <= 10, "the log directory, for the partitions once, for each checkpoint and the marker"


@pytest.mark.parametrize("changed", [{3}, {0, 7, 90}])
def test_a_stop_syncs_the_partitions_that_were_written_to_and_no_other(files: LossyFiles, changed: set[int]) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    manager.shutdown()
    manager = opened(files)
    elect(manager, 1)
    write(manager, changed, leader_epoch=1)
    operations = shut_down(manager, files)
    assert synced_partitions(operations) == {f"t-{partition}" for partition in changed}
    assert kinds(operations)["sync_all"] == 0, "it would wait for other programs"


def test_recovered_partitions_are_synced_at_once_too(files: LossyFiles) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY), leader_epoch=3)
    manager.shutdown()
    opened(files).abandon()
    manager = opened(files)
    assert not any(log.has_unflushed for log in manager)
    operations = shut_down(manager, files)
    assert synced_partitions(operations) == set()
    assert kinds(operations)["sync_all"] == 1
    check_kept(files.crash(random.Random(3)), range(MANY))


def check_kept(files: LossyFiles, partitions: Iterable[int]) -> None:
    """All that a clean stop promises."""
    assert is_marked_clean(files)
    manager = opened(files)
    for partition in partitions:
        log = manager.get("t", partition)
        assert log is not None
        assert read_all(log) == [(0, b"x%d" % partition)]
        assert (log.topic_id, log.epoch_for_offset(0), log.recovery_point) == (b"t" * 16, 3, 1)
        assert log.producers.producers[1].last_sequence == 0
        assert log.snapshots.offsets == (1,)
    manager.abandon()


@pytest.mark.parametrize("seed", range(5))
def test_what_was_synced_at_once_survives_a_power_cut(files: LossyFiles, seed: int) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY), leader_epoch=3)
    operations = shut_down(manager, files)
    assert kinds(operations)["sync_all"] == 3, "what was written, the leader epochs, and their names"
    assert synced_partitions(operations) == set()
    check_kept(files.crash(random.Random(seed)), range(MANY))
    assert files.open_count == 0


@pytest.mark.parametrize("failing_call", [1, 2, 3])
def test_a_file_system_with_errors_makes_each_log_sync_by_itself(files: LossyFiles, failing_call: int) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY), leader_epoch=3)
    calls = 0

    def fail(number: int, kind: str, path: str) -> None:
        nonlocal calls
        calls += kind == "sync_all"
        if kind == "sync_all" and calls == failing_call:
            raise OSError(errno.EIO, "of another program's file")

    files.before_operation = fail
    manager.shutdown()
    assert calls == failing_call
    files.before_operation = None
    check_kept(files.crash(random.Random(1)), range(MANY))


def test_a_log_that_cannot_be_synced_is_not_marked_clean(files: LossyFiles) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY))

    def fail(number: int, kind: str, path: str) -> None:
        if kind == "sync_all" or (kind == "sync" and path.startswith("/a/t-5/")):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    files.before_operation = fail
    manager.shutdown()
    assert "/a" in manager.dirs.offline
    assert not is_marked_clean(files)


@pytest.mark.parametrize("kind", ["pwrite", "create"])
def test_a_full_disk_leaves_one_log_to_the_next_start_and_closes_the_others(files: LossyFiles, kind: str) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY), leader_epoch=3)
    files.before_operation = only(kind, "/a/t-5/", errno.ENOSPC)
    manager.shutdown()
    files.before_operation = None
    assert not manager.dirs.offline
    assert not is_marked_clean(files)
    assert files.open_count == 0
    manager = opened(files.crash(random.Random(2)))
    for log in manager:
        assert len(read_all(log)) == 1
        assert log.epoch_for_offset(0) == 3


def test_a_directory_that_fails_while_it_is_closed_goes_offline(files: LossyFiles) -> None:
    files.syncs_all = True
    manager = opened(files)
    create(manager, range(MANY))
    write(manager, range(MANY))
    files.before_operation = failing("/a")
    manager.shutdown()
    assert "/a" in manager.dirs.offline
    assert manager.get(*TopicPartition("t", 0)) is None
