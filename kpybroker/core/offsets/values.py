"""A committed offset, and Java's measures of strings that Kafka's coordinators use."""

from __future__ import annotations

from dataclasses import dataclass

from kpybroker.wire.constants import ZERO_UUID


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """`expire_timestamp_ms` is set only by OffsetCommit v2-4 with a retention time, and then rules out any other.

    `topic_id` is that of the topic when the offset was committed; all zeros where it was not kept, as by Kafka 3.9.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: bytes = ZERO_UUID


def java_length(text: str) -> int:
    """Java's ``String.length()``, in which Kafka measures `offset.metadata.max.bytes`: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_hash_code(text: str) -> int:
    """Java's ``String.hashCode()``, a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(encoded), 2):
            value = (31 * value + (encoded[index] << 8) + encoded[index + 1]) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def coordinator_partition(key: str, partition_count: int) -> int:
    """The internal topic's partition for a group or a transactional id: Utils.abs(hashCode) % n."""
    hashed = java_hash_code(key)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partition_count
