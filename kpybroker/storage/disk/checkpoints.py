"""Small text files of a log directory: checkpoints, `meta.properties`, `partition.metadata`, the clean-shutdown marker.

Formats are Kafka's: a checkpoint is a version line (0), a line with the number of entries, and a line an entry
(`topic partition offset`, or `epoch start_offset`). Functions encode to bytes and decode from bytes; the caller writes
atomically (`files.replace_file`), mostly in a flush job.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kpybroker.core.replication.leader_epochs import EpochEntry
from kpybroker.core.topic_partition import TopicPartition, shared
from kpybroker.storage.disk.errors import CorruptCheckpointError
from kpybroker.wire.constants import ZERO_UUID

CURRENT_VERSION = 0


def _encode_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "\n".join([str(CURRENT_VERSION), str(len(entries)), *entries, ""]).encode()


def _decode_lines(data: bytes, path: str) -> list[list[str]]:
    """The fields of each entry. An empty file has none, as Kafka creates checkpoints empty."""
    try:
        lines = data.decode().splitlines()
        if not lines:
            return []
        if int(lines[0]) != CURRENT_VERSION:
            raise CorruptCheckpointError(
                f"Unrecognised version:{lines[0]}, expected version: {CURRENT_VERSION} in checkpoint file at: {path}"
            )
        if len(lines) == 1:
            raise CorruptCheckpointError(f"Expected the number of entries in checkpoint file [{path}]")
        expected = int(lines[1])
    except ValueError as error:
        raise CorruptCheckpointError(f"Malformed line in checkpoint file [{path}]: {error}") from error
    if len(lines) - 2 != expected:
        raise CorruptCheckpointError(
            f"Expected [{expected}] entries in checkpoint file [{path}], but found only [{len(lines) - 2}]"
        )
    return [line.split() for line in lines[2:]]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """An offset checkpoint (OffsetCheckpointFile)."""
    return _encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items())


def decode_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    """The offsets of an offset checkpoint. Raises CorruptCheckpointError."""
    offsets = {}
    for fields in _decode_lines(data, path):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise CorruptCheckpointError(f"Malformed line in checkpoint file [{path}]: {fields}") from error
    return offsets


def encode_leader_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """A leader-epoch checkpoint (LeaderEpochCheckpointFile)."""
    return _encode_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def decode_leader_epochs(data: bytes, path: str) -> list[EpochEntry]:
    """The entries of a leader-epoch checkpoint. Raises CorruptCheckpointError."""
    entries = []
    for fields in _decode_lines(data, path):
        try:
            epoch, start_offset = (int(text) for text in fields)
            if epoch < 0 or start_offset < 0:
                raise ValueError("negative")
        except ValueError as error:
            raise CorruptCheckpointError(f"Malformed line in checkpoint file [{path}]: {fields}") from error
        entries.append(EpochEntry(epoch, start_offset))
    return entries


def uuid_to_text(value: bytes) -> str:
    """Kafka's Uuid.toString: unpadded URL-safe base64."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of a Uuid. Raises ValueError."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"Input string `{text}` decoded as {len(value)} bytes, which is not equal to 16 bytes")
    return value


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """`partition.metadata`, which has no newline at its end."""
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes, path: str) -> bytes:
    """The topic id. Raises CorruptCheckpointError."""
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if line.strip())
        if int(fields["version"]) != CURRENT_VERSION:
            raise CorruptCheckpointError(
                f"Unrecognized version of partition metadata file ({path}): {fields['version']}"
            )
        topic_id = uuid_from_text(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise CorruptCheckpointError(f"Malformed line in checkpoint file [{path}]: {error}") from error
    if topic_id == ZERO_UUID:
        raise CorruptCheckpointError(f"Invalid topic ID in partition metadata file ({path})")
    return shared(topic_id)


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """`.kafka_cleanshutdown` (CleanShutdownFileHandler, KIP-966)."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch; None where the file, as before 3.7, does not have it."""
    try:
        epoch = json.loads(data)["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return epoch if isinstance(epoch, int) else None


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """`meta.properties`: version 0 in ZooKeeper mode; version 1 names the broker `node.id`.

    `others` are properties that we do not know and keep.
    """

    cluster_id: str | None = None
    broker_id: int | None = None
    directory_id: str | None = None
    version: int = 0
    others: Mapping[str, str] = field(default_factory=dict)


class _Keys(NamedTuple):
    cluster_id: str = "cluster.id"
    broker_id: str = "broker.id"
    node_id: str = "node.id"
    directory_id: str = "directory.id"
    version: str = "version"


_KEYS = _Keys()

_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})")


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """`meta.properties` as Java's Properties writes it, without the comment lines."""
    id_key = _KEYS.broker_id if meta.version == 0 else _KEYS.node_id
    values: dict[str, str | None] = {
        _KEYS.version: str(meta.version),
        _KEYS.cluster_id: meta.cluster_id,
        id_key: None if meta.broker_id is None else str(meta.broker_id),
        _KEYS.directory_id: meta.directory_id,
        **meta.others,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items() if value is not None).encode()


def decode_meta_properties(data: bytes, path: str) -> MetaProperties:
    """The fields of `meta.properties`, none of which version 0 must have (``MetaProperties.Builder``).

    Raises CorruptCheckpointError for what ends Kafka's reading of the directory too.
    """
    text = data.decode("latin-1")
    if _BAD_ESCAPE.search(text):
        raise CorruptCheckpointError(f"Malformed \\uxxxx encoding in {path}")
    values: dict[str, str] = {}
    for line in text.splitlines():
        pair = line.strip()
        if pair and not pair.startswith(("#", "!")):
            key, _, value = pair.partition("=")
            values[key.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    try:
        version = int(values.pop(_KEYS.version, "0"))
        id_text = values.pop(_KEYS.broker_id if version == 0 else _KEYS.node_id, None)
        broker_id = None if id_text is None else int(id_text)
        if _KEYS.directory_id in values:
            uuid_from_text(values[_KEYS.directory_id])
    except ValueError as error:
        raise CorruptCheckpointError(f"Malformed value in {path}: {error}") from error
    if version not in (0, 1):
        raise CorruptCheckpointError(f"Unknown meta.properties version {version} in {path}")
    if version == 1 and (broker_id is None or _KEYS.cluster_id not in values):
        raise CorruptCheckpointError(f"Failed to find node.id and cluster.id in {path}, which version 1 must have")
    return MetaProperties(
        cluster_id=values.pop(_KEYS.cluster_id, None),
        broker_id=broker_id,
        directory_id=values.pop(_KEYS.directory_id, None),
        version=version,
        others=values,
    )
