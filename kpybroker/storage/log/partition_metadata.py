"""The topic id of a log, in its `partition.metadata` (Kafka's PartitionMetadataFile)."""

from __future__ import annotations

import logging

from kpybroker.storage.disk import checkpoints, names
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.storage.disk.files import Files, read_file

logger = logging.getLogger("kafka.log.UnifiedLog")


def path_in(directory: str) -> str:
    """The file in a partition's directory."""
    return f"{directory}/{names.PARTITION_METADATA}"


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The topic id; None where there is none, or it cannot be read. Raises OSError."""
    path = path_in(directory)
    data = read_file(files, path)
    if not data:
        return None
    try:
        return checkpoints.decode_partition_metadata(data, path)
    except CorruptCheckpointError as error:
        logger.warning("Ignoring %s: %s", path, error)
        return None
