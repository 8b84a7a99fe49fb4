"""Configuration keys come as Kafka lists them. The orders are those of Kafka 3.9.1's answers."""

from __future__ import annotations

from kpybroker.config.hash_order import hash_order
from kpybroker.config.topic import TOPIC_KEYS

FIRST_OF_A_TOPIC = [
    "compression.type",
    "remote.log.delete.on.disable",
    "leader.replication.throttled.replicas",
    "remote.storage.enable",
    "message.downconversion.enable",
    "min.insync.replicas",
    "segment.jitter.ms",
    "remote.log.copy.disable",
    "local.retention.ms",
    "cleanup.policy",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "compression.lz4.level",
    "segment.bytes",
    "retention.ms",
    "compression.gzip.level",
    "flush.messages",
    "compression.zstd.level",
]


def test_all_keys_of_a_topic_come_as_from_kafka() -> None:
    ordered = hash_order(TOPIC_KEYS)
    assert ordered[: len(FIRST_OF_A_TOPIC)] == FIRST_OF_A_TOPIC
    assert sorted(ordered) == sorted(TOPIC_KEYS)


def test_a_few_keys_are_in_an_order_of_their_own() -> None:
    few = ["retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes"]
    assert hash_order(few) == ["cleanup.policy", "max.message.bytes", "segment.bytes", "retention.ms"]


def test_any_name_has_a_place() -> None:
    """Java counts UTF-16 units: a character beyond the first plane is two of them."""
    names = ["", "\U0001f600", "\ud83d", "\u00e4"]
    assert sorted(hash_order(names)) == sorted(names)
