"""The topic id of a log, in its `partition.metadata` (Kafka's PartitionMetadataFile)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kpybroker.storage.disk import checkpoints, names
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import Files, read_file, write_file
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.storage.log.log import Log

logger = logging.getLogger("kafka.log.UnifiedLog")


def path_in(directory: str) -> str:
    return f"{directory}/{names.PARTITION_METADATA}"


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """None where there is none, or nothing that can be read. Raises OSError."""
    path = path_in(directory)
    data = read_file(files, path)
    if not data:
        return None
    try:
        return checkpoints.decode_partition_metadata(data, path)
    except CorruptCheckpointError as error:
        logger.warning("Ignoring %s: %s", path, error)
        return None


def assign_topic_id(log: Log, topic_id: bytes) -> None:
    """See `Log.assign_topic_id`."""
    if topic_id == checkpoints.ZERO_UUID or topic_id == log.topic_id:
        return
    if log.topic_id is not None:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"Tried to assign topic ID {checkpoints.uuid_to_text(topic_id)} to log for topic partition "
            f"{log.partition}, but log already contained topic ID {checkpoints.uuid_to_text(log.topic_id)}",
        )
    path = path_in(log.directory)
    try:
        write_file(log.files, path, checkpoints.encode_partition_metadata(topic_id), sync=False)
    except OSError as error:
        raise log.io_error(error) from error
    log.topic_id = topic_id
    log.unflushed.paths.append(path)
