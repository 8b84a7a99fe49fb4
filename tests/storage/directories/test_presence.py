"""What is in use and was taken away is noticed, named and not reported as kept; what the broker does itself is not."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.directories.presence import IDLE_PER_PASS
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.storage.disk.files import DirEntry, FileStat
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.disk.os_files import OsFiles
from kpybroker.storage.log.log import Log
from tests.support.storage.batches import NOW_MS, append, log_config

CONFIG = log_config(segment_bytes=300, retention_ms=-1, file_delete_delay_ms=0)


@pytest.fixture
def logs(tmp_path: Path) -> LogManager:
    found = LogManager(local_files(), [str(tmp_path / "a"), str(tmp_path / "b")])
    found.dirs.write_meta("cluster", 0)
    found.load(lambda topic: CONFIG, NOW_MS)
    return found


def filled(logs: LogManager, topic: str = "t", partition: int = 0, records: int = 10) -> Log:
    log = logs.get_or_create(topic, partition, b"t" * 16, CONFIG, NOW_MS)
    for number in range(records):
        append(log, b"%d" % number * 20)
    return log


def look(logs: LogManager) -> None:
    for _ in logs.presence.look(logs):
        pass


def settle(logs: LogManager) -> None:
    """Passes until nothing is new, long after the last change: the clock of file systems ticks every few ms only."""
    directories, found = logs.in_use()
    for path in (*(directory.path for directory in directories), *(log.directory for log in found)):
        os.utime(path, (0, 0))
    for _ in range(3):
        look(logs)


def remove_partition(log: Log) -> None:
    shutil.rmtree(log.directory)


def move_partition(log: Log) -> None:
    Path(log.directory).rename(log.log_dir + "-elsewhere")


def replace_partition(log: Log) -> None:
    shutil.copytree(log.directory, log.log_dir + "-copy")
    shutil.rmtree(log.directory)
    Path(log.log_dir + "-copy").rename(log.directory)


def link_partition(log: Log) -> None:
    move_partition(log)
    Path(log.directory).symlink_to(log.log_dir + "-elsewhere")


def remove_first_segment(log: Log) -> None:
    os.unlink(log.segments_map.first.records.path)


def move_active_segment(log: Log) -> None:
    os.rename(log.segments_map.active.records.path, log.log_dir + "-segment")


def cut_active_segment(log: Log) -> None:
    path = log.segments_map.active.records.path
    os.truncate(path, os.stat(path).st_size - 1)


def remove_lock(log: Log) -> None:
    os.unlink(f"{log.log_dir}/.lock")


def remove_meta(log: Log) -> None:
    os.unlink(f"{log.log_dir}/meta.properties")


def remove_checkpoint(log: Log) -> None:
    os.unlink(f"{log.log_dir}/recovery-point-offset-checkpoint")


def remove_everything(log: Log) -> None:
    shutil.rmtree(log.log_dir)


LOSSES = [
    remove_partition,
    move_partition,
    replace_partition,
    link_partition,
    remove_first_segment,
    move_active_segment,
    cut_active_segment,
    remove_lock,
    remove_meta,
    remove_checkpoint,
    remove_everything,
]


@pytest.mark.parametrize("take", LOSSES)
def test_it_is_noticed_in_the_next_pass(logs: LogManager, take: Callable[[Log], None]) -> None:
    log = filled(logs)
    logs.recovery_point_checkpoint()()
    settle(logs)
    take(log)
    with pytest.raises(LogDirError) as raised:
        look(logs)
    assert raised.value.log_dir == log.log_dir
    assert "while it was in use" in str(raised.value)


@pytest.mark.parametrize("take", LOSSES)
def test_a_stop_does_not_report_it_as_kept(
    logs: LogManager, take: Callable[[Log], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(logs)
    logs.recovery_point_checkpoint()()
    settle(logs)
    take(log)
    logs.shutdown()
    assert "while it was in use" in caplog.text
    assert not os.path.exists(f"{log.log_dir}/.kafka_cleanshutdown")
    other = next(path for path in logs.dirs.configured if path != log.log_dir)
    assert os.path.exists(f"{other}/.kafka_cleanshutdown")


def test_the_log_names_the_offsets_that_were_acknowledged_in_between(
    logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    log, others = filled(logs), [filled(logs, "u", partition) for partition in range(4)]
    settle(logs)
    shutil.rmtree(log.directory)
    append(log, b"in the open file")
    with pytest.raises(LogDirError) as raised:
        look(logs)
    logs.take_offline(raised.value.log_dir, raised.value.cause)
    assert f"{log.directory} was taken away while it was in use" in caplog.text
    assert "of the records of t-0 below offset 11 some are lost. Those from offset 10 on were ack" in caplog.text
    errors = "".join(record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert not any(str(other.partition) in errors for other in others)


def test_a_file_that_was_replaced_by_a_copy_is_noticed_once_the_log_goes_on(logs: LogManager) -> None:
    log = filled(logs, records=1)
    settle(logs)
    path = log.segments_map.active.records.path
    shutil.copy(path, log.log_dir + "-segment")
    os.rename(log.log_dir + "-segment", path)
    append(log, b"x")
    assert log.segments_map.active.records.path == path
    with pytest.raises(LogDirError, match="was cut or replaced while it was in use"):
        look(logs)


def test_it_is_noticed_between_two_looks_of_one_millisecond(logs: LogManager) -> None:
    """A directory's time does not change then: each change is looked at twice."""
    log = filled(logs)
    look(logs)
    found = os.stat(log.directory)
    os.unlink(log.segments_map.first.records.path)
    os.utime(log.directory, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(LogDirError):
        look(logs)


def test_of_many_idle_partitions_each_has_its_turn(logs: LogManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpybroker.storage.directories.presence.IDLE_PER_PASS", 2)
    assert IDLE_PER_PASS > 2
    made = [filled(logs, "t", partition, records=1) for partition in range(7)]
    settle(logs)
    os.unlink(made[5].segments_map.active.records.path)
    failures = []
    for _ in range(5):
        try:
            look(logs)
        except LogDirError as error:
            failures.append(error)
    assert failures


def test_what_the_broker_removes_itself_is_no_loss(logs: LogManager) -> None:
    log = filled(logs)
    settle(logs)
    log.truncate_to(3, now_ms=NOW_MS)
    look(logs)
    log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    look(logs)
    append(log, b"x" * 200)
    append(log, b"x" * 200)
    log.update_high_watermark(102)
    log.increment_log_start_offset(101)
    assert log.delete_old_segments(NOW_MS)
    look(logs)
    for job in logs.deletions_due(NOW_MS):
        job()
    look(logs)
    filled(logs, "u")
    look(logs)
    logs.delete("u", 0, NOW_MS)
    look(logs)
    for job in logs.deletions_due(NOW_MS):
        job()
    settle(logs)
    other = next(path for path in logs.dirs.live if path != log.log_dir)
    logs.create_future("t", 0, other, NOW_MS)
    look(logs)
    logs.replace_with_future("t", 0, NOW_MS)
    for checkpoint in (logs.recovery_point_checkpoint(), logs.high_watermark_checkpoint()):
        checkpoint()
    settle(logs)
    logs.shutdown()
    assert all(os.path.exists(f"{path}/.kafka_cleanshutdown") for path in logs.dirs.configured)


class Counted(OsFiles):
    """The paths that were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[tuple[str, str]] = []

    def stat(self, path: str) -> FileStat | None:
        self.looks.append(("stat", path))
        return super().stat(path)

    def listdir(self, path: str) -> list[DirEntry]:
        self.looks.append(("list", path))
        return super().listdir(path)


def test_a_settled_partition_costs_one_stat_until_it_grows(tmp_path: Path) -> None:
    files = Counted()
    logs = LogManager(files, [str(tmp_path)])
    logs.dirs.write_meta("cluster", 0)
    logs.load(lambda topic: CONFIG, NOW_MS)
    log = filled(logs)
    settle(logs)
    files.looks.clear()
    look(logs)
    assert [kind for kind, path in files.looks if path.startswith(log.directory)] == ["stat"]
    append(log, b"x")
    files.looks.clear()
    look(logs)
    paths = [path for _, path in files.looks if path.startswith(log.directory)]
    assert paths == [log.directory, log.segments_map.active.records.path]
