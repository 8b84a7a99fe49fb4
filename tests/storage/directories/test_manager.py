"""The logs of a broker, through starts, stops and failures (LogManagerTest)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kpybroker.config.topic import LogConfig
from kpybroker.storage.directories.manager import LogManager
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import decode_offsets
from kpybroker.storage.disk.errors import (
    DuplicateLogError,
    LogDirError,
    UnknownLogDirectoryError,
)
from kpybroker.storage.disk.files import make_dirs, read_file, remove_tree, write_file
from kpybroker.storage.disk.local_files import local_files
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.builder import build_batch
from tests.support.storage.batches import NOW_MS, append, append_as_coordinator, log_config, read_all
from tests.support.storage.lossy_files import LossyFiles, failing

CONFIG = log_config(segment_bytes=300, retention_ms=-1, file_delete_delay_ms=1000)
TOPIC_ID = b"t" * 16


def manager(files: LossyFiles, *log_dirs: str, config: LogConfig = CONFIG) -> LogManager:
    found = LogManager(files, log_dirs or ["/a"], new_id=lambda: "id")
    found.load(lambda topic: config, NOW_MS)
    return found


@pytest.fixture
def logs(files: LossyFiles) -> LogManager:
    return manager(files)


def log_of(logs: LogManager, topic: str = "t", partition: int = 0) -> Log:
    return logs.get_or_create(topic, partition, TOPIC_ID, CONFIG, NOW_MS)


def offsets(files: LossyFiles, name: str, log_dir: str = "/a") -> dict[object, int]:
    path = f"{log_dir}/{name}"
    return dict(decode_offsets(read_file(files, path) or b"", path))


def run(jobs: list[Callable[[], None]]) -> None:
    for job in jobs:
        job()


def test_logs_are_found_again_after_a_clean_stop(logs: LogManager, files: LossyFiles) -> None:
    for partition in range(3):
        log = log_of(logs, "t", partition)
        for number in range(10):
            append(log, b"%d" % number)
        log.update_high_watermark(7)
    log_of(logs, "u")
    logs.shutdown(17)
    assert files.open_count == 0
    assert read_file(files, "/a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":17}'
    logs = manager(files)
    assert read_file(files, "/a/.kafka_cleanshutdown") is None
    assert sorted(log.partition for log in logs) == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    log = log_of(logs, "t", 2)
    assert (log.log_end_offset, log.high_watermark, log.topic_id) == (10, 7, TOPIC_ID)
    assert len(logs.logs_of("t")) == 3
    assert logs.get("t", 9) is None


@pytest.mark.parametrize("begun", [False, True])
def test_a_start_that_fails_leaves_checkpoints_and_marker_as_they_were(
    logs: LogManager, files: LossyFiles, begun: bool
) -> None:
    """Otherwise records that DeleteRecords removed would be back, for example."""
    for topic in ("t", "u"):
        log = log_of(logs, topic)
        for number in range(3):
            append(log, b"%d" % number)
        log.update_high_watermark(3)
        log.increment_log_start_offset(2)
    logs.shutdown(17)
    before = {entry.name: read_file(files, f"/a/{entry.name}") for entry in files.listdir("/a") if not entry.is_dir}
    failed = LogManager(files, ["/a"], new_id=lambda: "id")
    if begun:

        def config_for(topic: str) -> LogConfig:
            if topic == "u":
                raise LookupError(topic)
            return CONFIG

        with pytest.raises(LookupError):
            failed.load(config_for, NOW_MS)
        del before[names.CLEAN_SHUTDOWN]
    failed.shutdown()
    assert before == {
        entry.name: read_file(files, f"/a/{entry.name}") for entry in files.listdir("/a") if not entry.is_dir
    }
    logs = manager(files)
    assert [(log_of(logs, topic).log_start_offset, log_of(logs, topic).high_watermark) for topic in "tu"] == [
        (2, 3)
    ] * 2


def test_after_a_kill_logs_are_recovered_from_their_recovery_points(logs: LogManager, files: LossyFiles) -> None:
    log = log_of(logs)
    for number in range(10):
        append(log, b"%d" % number)
    log.flush()
    logs.recovery_point_checkpoint()()
    append(log, b"unflushed")
    assert offsets(files, names.RECOVERY_POINT_CHECKPOINT) == {("t", 0): 10}
    logs = manager(files.snapshot())
    log = log_of(logs)
    assert (log.log_end_offset, log.recovery_point) == (11, 10)


def test_a_damaged_checkpoint_costs_a_longer_recovery_and_no_data(logs: LogManager, files: LossyFiles) -> None:
    append(log_of(logs), b"x")
    logs.shutdown()
    for name in (names.RECOVERY_POINT_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT):
        write_file(files, f"/a/{name}", b"nonsense", sync=True)
    files.unlink("/a/.kafka_cleanshutdown")
    assert read_all(log_of(manager(files))) == [(0, b"x")]


def test_a_log_is_created_where_the_fewest_are(files: LossyFiles) -> None:
    logs = manager(files, "/a", "/b", "/c")
    for partition in range(7):
        log_of(logs, "t", partition)
    assert sorted(len(logs.logs_in(path)) for path in ("/a", "/b", "/c")) == [2, 2, 3]
    logs.prefer_dir("u", 0, "/c")
    assert log_of(logs, "u").log_dir == "/c"


def test_a_cordoned_directory_takes_no_new_logs(files: LossyFiles) -> None:
    logs = manager(files, "/a", "/b", "/c")
    log_of(logs, "t")
    logs.dirs.cordon(["/b", "/c/"])
    assert [logs.dirs.is_cordoned(path) for path in ("/a", "/b", "/c")] == [False, True, True]
    for partition in range(1, 4):
        assert log_of(logs, "t", partition).log_dir == "/a"
    logs.dirs.cordon(["/a", "/b", "/c"])
    assert log_of(logs, "u").log_dir == "/a", "the first, where all are cordoned"
    logs.dirs.cordon([])
    assert log_of(logs, "u", 1).log_dir != "/a"


def test_a_deleted_log_is_renamed_and_removed_later(logs: LogManager, files: LossyFiles) -> None:
    append(log_of(logs), b"x")
    assert logs.delete("t", 0, NOW_MS)
    assert not logs.delete("t", 0, NOW_MS)
    assert files.stat("/a/t-0.id-delete") is not None
    assert logs.get("t", 0) is None
    assert log_of(logs).log_end_offset == 0  # the name can be used again at once
    run(logs.deletions_due(NOW_MS + 999))
    assert files.stat("/a/t-0.id-delete") is not None
    run(logs.deletions_due(NOW_MS + 1000))
    assert files.stat("/a/t-0.id-delete") is None


def test_a_deletion_that_a_stop_interrupted_is_finished(logs: LogManager, files: LossyFiles) -> None:
    log_of(logs)
    logs.delete("t", 0, NOW_MS)
    logs.shutdown()
    logs = manager(files)
    assert list(logs) == []
    run(logs.deletions_due(NOW_MS))
    assert files.stat("/a/t-0.id-delete") is None


def test_retention_runs_on_all_logs_except_those_only_compacted() -> None:
    logs = manager(LossyFiles())
    for topic, policy in (("t", {"delete"}), ("u", {"compact"}), ("v", {"compact", "delete"})):
        log = logs.get_or_create(
            topic, 0, TOPIC_ID, log_config(segment_bytes=300, retention_ms=10, cleanup_policy=frozenset(policy)), NOW_MS
        )
        for _ in range(10):
            append_as_coordinator(log, _keyed())
        log.update_high_watermark(10)
    assert sum(logs.cleanup_logs(NOW_MS + 1000)) > 0
    ends = {log.partition.topic: log.log_start_offset for log in logs}
    assert ends == {"t": 10, "u": 0, "v": 10}


def test_retention_of_many_segments_goes_step_by_step() -> None:
    logs = manager(LossyFiles())
    log = logs.get_or_create("t", 0, TOPIC_ID, log_config(segment_bytes=100, retention_ms=10), NOW_MS)
    for _ in range(50):
        append_as_coordinator(log, _keyed())
    log.update_high_watermark(50)
    segments = len(log.segments())
    steps, starts = [], []
    for removed in logs.cleanup_logs(NOW_MS + 1000):
        steps.append(removed)
        starts.append(log.log_start_offset)
    assert max(steps) <= 16 < sum(steps) == segments
    assert starts == sorted(starts)
    assert starts[-1] == 50


def test_retention_ends_even_while_too_old_records_are_appended() -> None:
    logs = manager(LossyFiles())
    log = logs.get_or_create("t", 0, TOPIC_ID, log_config(segment_bytes=100, retention_ms=10), NOW_MS)
    for _ in range(50):
        append_as_coordinator(log, _keyed())
    log.update_high_watermark(50)
    for steps, _ in enumerate(logs.cleanup_logs(NOW_MS + 1000)):
        assert steps < 20, "what came in between is left to the next time"
        append_as_coordinator(log, _keyed())
        log.update_high_watermark(log.log_end_offset)
    assert 50 <= log.log_start_offset < log.log_end_offset


def test_retention_skips_a_log_that_was_deleted_since() -> None:
    logs = manager(LossyFiles())
    for topic in ("t", "u"):
        log = logs.get_or_create(topic, 0, TOPIC_ID, log_config(segment_bytes=100, retention_ms=10), NOW_MS)
        for _ in range(50):
            append_as_coordinator(log, _keyed())
        log.update_high_watermark(50)
    steps = logs.cleanup_logs(NOW_MS + 1000)
    assert next(removed for removed in steps if removed) <= 16
    logs.delete("t", 0, NOW_MS + 1000)
    sum(steps)
    assert [(log.partition.topic, log.log_start_offset) for log in logs] == [("u", 50)]


def _keyed() -> bytes:
    return bytes(build_batch([(b"key", b"value", NOW_MS)]))


def test_flush_jobs_are_for_logs_that_rolled_or_waited(logs: LogManager) -> None:
    rolled, waiting, fresh = (log_of(logs, topic) for topic in "tuv")
    for log in (rolled, waiting, fresh):
        log.flush(NOW_MS)
    for _ in range(10):
        append(rolled, b"x")
    waiting.update_config(log_config(flush_ms=100))
    for log in (waiting, fresh):
        append(log, b"x")
    jobs = logs.flush_jobs(NOW_MS + 100)
    for job in jobs:
        job.run()
        job.complete()
    assert (rolled.recovery_point, waiting.recovery_point, fresh.recovery_point) == (10, 1, 0)
    assert list(logs.flush_jobs(NOW_MS + 100)) == []


def test_start_offsets_are_checkpointed_where_they_lie_within_a_segment(logs: LogManager, files: LossyFiles) -> None:
    for topic in "tu":
        log = log_of(logs, topic)
        for _ in range(3):
            append(log, b"x")
        log.update_high_watermark(3)
    log_of(logs, "t").increment_log_start_offset(2)
    logs.log_start_offset_checkpoint()()
    logs.high_watermark_checkpoint()()
    assert offsets(files, names.LOG_START_OFFSET_CHECKPOINT) == {("t", 0): 2}
    assert offsets(files, names.HIGH_WATERMARK_CHECKPOINT) == {("t", 0): 3, ("u", 0): 3}
    assert log_of(manager(files.snapshot()), "t").log_start_offset == 2


def test_a_strange_directory_stops_the_start(files: LossyFiles) -> None:
    make_dirs(files, "/a/lost+found")
    with pytest.raises(UnknownLogDirectoryError):
        manager(files)


def test_a_partition_in_two_directories_stops_the_start(files: LossyFiles) -> None:
    for path in ("/a/t-0", "/b/t-0"):
        make_dirs(files, path)
    with pytest.raises(DuplicateLogError):
        manager(files, "/a", "/b")


# --- failures


def test_a_directory_that_cannot_be_opened_is_offline_from_the_start(files: LossyFiles) -> None:
    files.before_operation = failing("/b")
    logs = manager(files, "/a", "/b")
    assert list(logs.dirs.live) == ["/a"]
    assert list(logs.dirs.offline) == ["/b"]
    assert log_of(logs).log_dir == "/a"
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.KAFKA_STORAGE_ERROR):
        logs.get_or_create("old", 0, TOPIC_ID, CONFIG, NOW_MS, is_new=False)


def test_a_failed_directory_takes_its_logs_with_it_and_no_others(files: LossyFiles) -> None:
    logs = manager(files, "/a", "/b")
    for partition in range(4):
        append(log_of(logs, "t", partition), b"x")
    files.before_operation = failing("/b")
    victim = next(log for log in logs if log.log_dir == "/b")
    with pytest.raises(LogDirError) as caught:
        append(victim, b"y")
    lost = logs.take_offline(caught.value.log_dir, caught.value.cause)
    assert len(lost) == 2
    assert logs.take_offline("/b", "again") == []
    assert sorted(log.log_dir for log in logs) == ["/a", "/a"]
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.KAFKA_STORAGE_ERROR):
        logs.delete(*lost[0], NOW_MS)
    logs.recovery_point_checkpoint()()
    logs.shutdown()
    assert read_file(files, "/a/.kafka_cleanshutdown") is not None
    assert read_file(files, "/b/.kafka_cleanshutdown") is None
    assert files.locked == set()


def test_a_directory_that_fails_while_closing_is_not_marked_clean(files: LossyFiles) -> None:
    logs = manager(files, "/a", "/b")
    for partition in range(2):
        append(log_of(logs, "t", partition), b"x")
    files.before_operation = failing("/b")
    logs.shutdown()
    assert read_file(files, "/a/.kafka_cleanshutdown") is not None
    assert read_file(files, "/b/.kafka_cleanshutdown") is None
    assert "/b" in logs.dirs.offline


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="making a link takes a privilege there")
@pytest.mark.parametrize(
    "name",
    [
        "t-0",
        "u-7",
        "t-0/00000000000000000000.log",
        "t-0/00000000000000000000.index",
        "t-0/00000000000000000000.timeindex",
        "t-0/leader-epoch-checkpoint",
        "t-0/partition.metadata",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        ".kafka_cleanshutdown",
        "t-1.0123456789abcdef0123456789abcdef-delete",
    ],
)
@pytest.mark.parametrize("was_clean", [True, False])
def test_a_link_in_a_log_directory_takes_it_offline_and_is_not_followed(
    tmp_path: Path, name: str, was_clean: bool
) -> None:
    """Recovery cuts what it takes for damaged: through a link, any file of the machine."""

    def opened() -> LogManager:
        found = LogManager(local_files(), [str(tmp_path / "a"), str(tmp_path / "b")])
        found.dirs.write_meta("cluster", 0)
        found.load(lambda topic: CONFIG, NOW_MS)
        return found

    logs = opened()
    logs.prefer_dir("t", 0, str(tmp_path / "a"))
    append(log_of(logs), b"x", leader_epoch=3)
    logs.shutdown() if was_clean else logs.abandon()
    place, victim = tmp_path / "a" / name, tmp_path / "victim"
    if place.is_dir():
        shutil.move(place, victim)
    else:
        victim.write_bytes(b"not a byte of it is for the broker" * 100)
        place.unlink(missing_ok=True)
    place.symlink_to(victim)
    before = _content(victim)
    logs = opened()
    assert list(logs.dirs.offline) == [str(tmp_path / "a")]
    assert "is a symbolic link" in logs.dirs.offline[str(tmp_path / "a")]
    logs.shutdown()
    assert _content(victim) == before


def _content(path: Path) -> object:
    return {file.name: file.read_bytes() for file in path.iterdir()} if path.is_dir() else path.read_bytes()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="making a link takes a privilege there")
def test_the_log_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "a").symlink_to(tmp_path / "disk")
    for end_offset in (1, 2):
        logs = LogManager(local_files(), [str(tmp_path / "a")])
        logs.load(lambda topic: CONFIG, NOW_MS)
        append(log_of(logs), b"x")
        assert log_of(logs).log_end_offset == end_offset
        for _ in logs.presence.look(logs):
            pass
        logs.shutdown()


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        ("x" * 300, 0),
        ("..", 0),
        (".", 0),
        ("", 0),
        ("a/b", 0),
        ("a\0b", 0),
        ("a b", 0),
        ("ä", 0),
        ("t", -1),
        ("t", 2**31 - 1),
    ],
)
def test_what_cannot_be_a_directory_is_refused_and_harms_nothing(
    logs: LogManager, files: LossyFiles, topic: str, partition: int
) -> None:
    with pytest.raises(KafkaError) as raised:
        log_of(logs, topic, partition)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert not logs.dirs.offline
    assert not any(entry.is_dir for entry in files.listdir("/a"))


def test_a_copy_whose_directory_would_have_too_long_a_name_is_refused(files: LossyFiles) -> None:
    logs = manager(files, "/a", "/b")
    topic = "x" * 240
    log = log_of(logs, topic)
    logs._new_id = lambda: "0" * 32
    other = next(path for path in logs.dirs.live if path != log.log_dir)
    with pytest.raises(KafkaError, match="too long a name"):
        logs.create_future(topic, 0, other, NOW_MS)
    assert len(logs.dirs.live) == 2


@pytest.mark.parametrize("was_clean", [True, False])
def test_a_directory_that_was_taken_away_between_two_runs_is_not_passed_over(
    logs: LogManager, files: LossyFiles, was_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in ("t", "u", "empty"):
        log = log_of(logs, topic)
        for _ in range(0 if topic == "empty" else 5):
            append(log, b"x")
        log.update_high_watermark(log.log_end_offset)
    logs.high_watermark_checkpoint()()
    logs.shutdown() if was_clean else logs.abandon()
    for topic in ("t", "empty"):
        remove_tree(files, f"/a/{topic}-0")
    logs = manager(files)
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith("The checkpoints of /a have offset 5 of t-0, and it has no directory there")
    logs.shutdown()
    caplog.clear()
    manager(files)
    assert not caplog.records
