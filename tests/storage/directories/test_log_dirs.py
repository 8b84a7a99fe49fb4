"""Log directories: their locks, and what their `meta.properties` agree on (LogManagerTest)."""

from __future__ import annotations

import pytest

from kpybroker.storage.directories.log_dirs import LogDirs
from kpybroker.storage.disk.errors import (
    CorruptCheckpointError,
    InconsistentBrokerIdError,
    InconsistentClusterIdError,
    InconsistentMetadataError,
    LogDirError,
    LogDirLockedError,
)
from kpybroker.storage.disk.files import make_dirs, read_file, write_file
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.lossy_files import LossyFiles, failing


def test_meta_properties_are_written_once_and_checked(files: LossyFiles) -> None:
    dirs = LogDirs(files, ["/a", "/b"])
    assert (dirs.meta.cluster_id, dirs.meta.broker_id) == (None, None)
    dirs.check_meta("cluster", 3)
    dirs.write_meta("cluster", 3)
    dirs.close()
    assert read_file(files, "/b/meta.properties") == b"version=0\ncluster.id=cluster\nbroker.id=3\n"
    dirs = LogDirs(files, ["/a", "/b", "/new"])
    assert (dirs.meta.cluster_id, dirs.meta.broker_id) == ("cluster", 3)
    with pytest.raises(InconsistentClusterIdError, match="other"):
        dirs.check_meta("other", 3)
    with pytest.raises(InconsistentBrokerIdError, match="4"):
        dirs.check_meta("cluster", 4)
    dirs.write_meta("cluster", 3)
    assert read_file(files, "/new/meta.properties") == read_file(files, "/a/meta.properties")


def test_a_directory_that_cannot_take_the_ids_goes_offline(files: LossyFiles) -> None:
    dirs = LogDirs(files, ["/a", "/b"])
    files.before_operation = failing("/b")
    dirs.write_meta("cluster", 3)
    assert (list(dirs.live), list(dirs.offline)) == (["/a"], ["/b"])
    assert (dirs.is_live("/a"), dirs.is_live("/b/")) == (True, False)
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.LOG_DIR_NOT_FOUND):
        dirs.is_live("/c")


def test_directories_of_two_brokers_are_refused(files: LossyFiles) -> None:
    for path, broker_id in (("/a", 1), ("/b", 2)):
        make_dirs(files, path)
        write_file(files, f"{path}/meta.properties", f"version=0\nbroker.id={broker_id}\n".encode(), sync=True)
    with pytest.raises(InconsistentMetadataError):
        LogDirs(files, ["/a", "/b"])
    assert files.locked == set()


def test_a_directory_is_locked_for_one_broker(files: LossyFiles) -> None:
    dirs = LogDirs(files, ["/a"])
    with pytest.raises(LogDirLockedError, check=lambda error: error.log_dir == "/a"):
        LogDirs(files, ["/a"])
    dirs.close()
    LogDirs(files, ["/a"])


def test_one_directory_named_twice_is_refused() -> None:
    with pytest.raises((InconsistentMetadataError, LogDirLockedError)):
        LogDirs(LossyFiles(), ["/a", "/a/"])


def test_without_any_directory_there_is_no_start(files: LossyFiles) -> None:
    files.before_operation = failing("/")
    with pytest.raises(LogDirError):
        LogDirs(files, ["/a", "/b"])


def test_disk_usage_of_a_directory(files: LossyFiles) -> None:
    dirs = LogDirs(files, ["/a"])
    usage = dirs.disk_usage("/a")
    assert usage.total_bytes >= usage.usable_bytes > 0


def with_meta(path: str, data: bytes, files: LossyFiles | None = None) -> LossyFiles:
    files = files or LossyFiles()
    make_dirs(files, path)
    write_file(files, f"{path}/meta.properties", data, sync=True)
    return files


@pytest.mark.parametrize("data", [b"", b"\0" * 60, b"hello world\n"])
def test_an_emptied_file_is_rewritten_with_a_warning(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Kafka 3.9 rewrites it too, which its log says at INFO."""
    files = with_meta("/a", data)
    dirs = LogDirs(files, ["/a", "/new"])
    dirs.write_meta("cluster", 3)
    assert read_file(files, "/a/meta.properties") == b"version=0\ncluster.id=cluster\nbroker.id=3\n"
    (message,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert message.startswith("/a/meta.properties names neither its cluster nor its broker")
    assert message.endswith("Rewriting it with cluster.id=cluster and broker.id=3")


def test_a_file_that_lacks_one_id_gets_it_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    dirs = LogDirs(with_meta("/a", b"version=0\nbroker.id=3\nmore=kept\n"), ["/a"])
    dirs.write_meta("cluster", 3)
    assert caplog.records == []
    assert dirs.live["/a"].meta is not None
    assert dirs.live["/a"].meta.others == {"more": "kept"}


def test_an_unreadable_file_takes_its_directory_offline_and_the_last_one_ends_the_start() -> None:
    files = with_meta("/a", b"version=x\n")
    dirs = LogDirs(files, ["/a", "/b"])
    assert (list(dirs.live), list(dirs.offline)) == (["/b"], ["/a"])
    assert "Malformed value in /a/meta.properties" in dirs.offline["/a"]
    dirs.close()
    with pytest.raises(CorruptCheckpointError, match=r"/a/meta\.properties"):
        LogDirs(files, ["/a"])
    assert files.locked == set()


def test_the_error_of_a_start_without_directories_says_why_each_is_not_used() -> None:
    files = with_meta("/a", b"version=x\n")
    files.before_operation = failing("/b")
    with pytest.raises(LogDirError, match=r"Malformed value in /a/meta\.properties.*data directory /b"):
        LogDirs(files, ["/a", "/b"])
