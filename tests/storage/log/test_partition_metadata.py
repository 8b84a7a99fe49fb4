"""The topic id of a log (PartitionMetadataFileTest, UnifiedLogTest)."""

from __future__ import annotations

import pytest

from kpybroker.storage.disk.files import write_file
from kpybroker.storage.log import partition_metadata
from kpybroker.storage.log.log import Log
from kpybroker.wire.errors import ErrorCode, KafkaError
from tests.support.storage.batches import open_log
from tests.support.storage.lossy_files import LossyFiles


def new(files: LossyFiles) -> Log:
    return open_log(files, "/logs/t-0")


def test_a_topic_id_is_kept_and_never_changes(files: LossyFiles) -> None:
    log = new(files)
    log.assign_topic_id(bytes(16))
    assert log.topic_id is None
    log.assign_topic_id(b"1" * 16)
    log.close()
    log = new(files)
    assert log.topic_id == b"1" * 16
    with pytest.raises(KafkaError, check=lambda error: error.code is ErrorCode.INCONSISTENT_TOPIC_ID):
        log.assign_topic_id(b"2" * 16)


def test_an_unreadable_file_gives_no_topic_id_and_is_replaced(files: LossyFiles) -> None:
    new(files).close()
    write_file(files, partition_metadata.path_in("/logs/t-0"), b"version: 0\ntopic_id: ?\n", sync=True)
    log = new(files)
    assert log.topic_id is None
    log.assign_topic_id(b"1" * 16)
    assert partition_metadata.read_topic_id(files, "/logs/t-0") == b"1" * 16
