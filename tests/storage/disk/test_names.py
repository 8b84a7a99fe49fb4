"""Names in a log directory (LocalLog, LogFileUtils)."""

from __future__ import annotations

import pytest

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.errors import UnknownLogDirectoryError


def test_segment_files_have_twenty_digits() -> None:
    assert names.segment_file("/d", 17, names.LOG_SUFFIX) == "/d/00000000000000000017.log"
    assert names.offset_of("00000000000000000017.log.deleted") == 17
    assert names.offset_of("leader-epoch-checkpoint") is None


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("t-0", ("t", 0)),
        ("a-b.c_d-12", ("a-b.c_d", 12)),
        ("t-3.0123456789abcdef0123456789abcdef-delete", ("t", 3)),
        ("a-b-3.0123-future", ("a-b", 3)),
        ("t-3.0123-stray", ("t", 3)),
        ("t.x-delete-0", ("t.x-delete", 0)),
    ],
)
def test_directories_name_partitions(name: str, partition: tuple[str, int]) -> None:
    assert names.parse_dir_name(f"/logs/{name}") == partition


@pytest.mark.parametrize("name", ["", "t", "t-", "-0", "t-x", "lost+found", "-delete", "t-0-delete", "t-²"])
def test_other_directories_are_refused(name: str) -> None:
    with pytest.raises(UnknownLogDirectoryError):
        names.parse_dir_name(f"/logs/{name}")


def test_a_deleted_log_keeps_its_name_within_255_characters() -> None:
    partition = TopicPartition("t" * 249, 0)
    name = names.delete_dir_name(partition, "0" * 32)
    assert len(name) == 255
    assert name.endswith(f"-0.{'0' * 32}-delete")
    assert names.future_dir_name(TopicPartition("t", 1), "ab") == "t-1.ab-future"


def test_replacing_a_suffix_that_is_not_there_is_an_error() -> None:
    assert names.replace_suffix("a.log.swap", ".swap", "") == "a.log"
    with pytest.raises(ValueError, match="end with"):
        names.replace_suffix("a.log", ".swap", "")
