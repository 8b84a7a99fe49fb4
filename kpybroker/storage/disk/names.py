"""Names of files and directories in a log directory, as Kafka's LogFileUtils and LocalLog build and read them.

Pure string work; no file is touched. A random id, where a name needs one, is an argument.
"""

from __future__ import annotations

import os
import re
import sys

from kpybroker.core.topic_partition import TopicPartition
from kpybroker.storage.disk.errors import UnknownLogDirectoryError

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"

SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"

# Directories of a log directory that hold no partition (RemoteIndexCache, KRaft's metadata topic).
IGNORED_DIRECTORIES = frozenset({"remote-log-index-cache", "__cluster_metadata-0"})

MAX_NAME_LENGTH = 255

IS_LINK = "is a symbolic link, and below a log directory none is followed"

_MARKED_DIR = re.compile(r"^(\S+)-(\S+)\.(\S+)-(?:delete|future|stray)$")
_MARKED_SUFFIXES = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)
INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    """`<directory>/<20 digits><suffix>`."""
    return f"{directory}/{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset that a file's name begins with; None where it does not."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def is_log_file(name: str) -> bool:
    """Whether a name is that of a segment's `.log` file."""
    return name.endswith(LOG_SUFFIX)


def is_index_file(name: str) -> bool:
    """Whether a name is that of one of a segment's three indexes."""
    return name.endswith(INDEX_SUFFIXES)


def replace_suffix(path: str, old: str, new: str) -> str:
    """Swap the end of a path; an error where it does not end so (Utils.replaceSuffix)."""
    if not path.endswith(old):
        raise ValueError(f"Expected string to end with {old} but string is {path}")
    return path[: len(path) - len(old)] + new


def log_dir_name(partition: TopicPartition) -> str:
    """The directory of a partition's log."""
    return f"{partition.topic}-{partition.partition}"


def delete_dir_name(partition: TopicPartition, unique_id: str) -> str:
    """The name that a log's directory gets when the log is deleted."""
    # A topic's name may have 249 characters: it is cut so that the whole stays within 255.
    suffix = f"-{partition.partition}.{unique_id}{DELETE_DIR_SUFFIX}"
    return partition.topic[: MAX_NAME_LENGTH - len(suffix)] + suffix


def future_dir_name(partition: TopicPartition, unique_id: str) -> str:
    """The directory of a log's copy on its way to another log directory (AlterReplicaLogDirs)."""
    return f"{log_dir_name(partition)}.{unique_id}{FUTURE_DIR_SUFFIX}"


def parse_dir_name(path: str) -> TopicPartition:
    """The partition whose log a directory holds (LocalLog.parseTopicPartitionName)."""
    name = os.path.basename(path)
    marked = name.endswith(_MARKED_SUFFIXES)
    if marked and _MARKED_DIR.match(name) is None:
        raise _unknown(path)
    plain = name[: name.rindex(".")] if marked else name
    topic, dash, digits = plain.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()):
        raise _unknown(path)
    return TopicPartition(sys.intern(topic), int(digits))


def _unknown(path: str) -> UnknownLogDirectoryError:
    return UnknownLogDirectoryError(
        f"Found directory {path}, '{os.path.basename(path)}' is not in the form of topic-partition or "
        "topic-partition.uniqueId-delete (if marked for deletion).\n"
        "Kafka's log directories (and children) should only contain Kafka topic data."
    )
