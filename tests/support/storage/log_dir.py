"""A log directory as a broker leaves it, small and with some of everything, for `kpybroker log`."""

from __future__ import annotations

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk import names
from kpybroker.storage.disk.checkpoints import (
    MetaProperties,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
)
from kpybroker.storage.disk.files import Files, make_dirs, write_file
from kpybroker.storage.log.log import Log
from tests.support.storage.batches import (
    NOW_MS,
    append,
    append_as_coordinator,
    append_batch,
    batch,
    log_config,
    marker,
    open_log,
)

PARTITION = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
ABORTED_PRODUCER, ABORTED_FIRST, ABORTED_MARKER = 2, 40, 43
END_OFFSET = 60


def make_log_dir(files: Files, root: str, *, clean: bool = True) -> str:
    """Makes it, and returns the partition's directory.

    Batches of one record with rising timestamps in several segments: an idempotent producer, then a transactional one
    that aborts, then one without an id.
    """
    directory = f"{root}/{PARTITION}"
    make_dirs(files, directory)
    config = log_config(segment_bytes=1200, index_interval_bytes=150, segment_index_bytes=240)
    log = open_log(files, directory, config, verification_enabled=False)
    _fill(log)
    assert log.log_end_offset == END_OFFSET
    log.flush()
    log.close()

    def write(path: str, data: bytes) -> None:
        write_file(files, path, data, sync=True)

    write(f"{directory}/{names.PARTITION_METADATA}", encode_partition_metadata(TOPIC_ID))
    write(f"{root}/{names.META_PROPERTIES}", encode_meta_properties(MetaProperties("cluster", 0)))
    for name in (names.RECOVERY_POINT_CHECKPOINT, names.HIGH_WATERMARK_CHECKPOINT):
        write(f"{root}/{name}", encode_offsets({PARTITION: END_OFFSET}))
    write(f"{root}/{names.LOG_START_OFFSET_CHECKPOINT}", encode_offsets({}))
    if clean:
        write(f"{root}/{names.CLEAN_SHUTDOWN}", encode_clean_shutdown(7))
    return directory


def _fill(log: Log) -> None:
    for n in range(ABORTED_FIRST):
        options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": n, "timestamp": NOW_MS + n}
        append(log, b"value %d" % n, leader_epoch=n // 15, **options)
    for n in range(ABORTED_FIRST, ABORTED_MARKER):
        records = batch(
            b"aborted",
            timestamp=NOW_MS + n,
            producer_id=ABORTED_PRODUCER,
            producer_epoch=0,
            base_sequence=n - ABORTED_FIRST,
            is_transactional=True,
        )
        append_batch(log, records, 3)
    append_as_coordinator(log, marker(commit=False, producer_id=ABORTED_PRODUCER), 3)
    for n in range(ABORTED_MARKER + 1, END_OFFSET):
        append(log, b"value %d" % n, timestamp=NOW_MS + n, leader_epoch=3)
