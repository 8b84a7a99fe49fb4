"""Configuration keys are in Kafka's order. The expected orders are from responses of Kafka 3.9.1."""

from __future__ import annotations

from kpybroker.config.hash_order import hash_order, hash_set_order
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


def test_all_keys_of_a_topic_are_in_the_order_of_kafka() -> None:
    ordered = hash_order(TOPIC_KEYS)
    assert ordered[: len(FIRST_OF_A_TOPIC)] == FIRST_OF_A_TOPIC
    assert sorted(ordered) == sorted(TOPIC_KEYS)


def test_a_subset_of_keys_has_another_order() -> None:
    few = ["retention.ms", "cleanup.policy", "max.message.bytes", "segment.bytes"]
    assert hash_order(few) == ["cleanup.policy", "max.message.bytes", "segment.bytes", "retention.ms"]


def test_any_name_can_be_ordered() -> None:
    """Java counts UTF-16 units: a character beyond the first plane is two of them."""
    names = ["", "\U0001f600", "\ud83d", "\u00e4"]
    assert sorted(hash_order(names)) == sorted(names)


def test_a_java_set_grows_with_its_thirteenth_element() -> None:
    """By then it has 32 buckets, and the zero, whose code is 48, is no longer in the first one."""
    twelve = ["!", *"0abcdefghij"]
    assert hash_set_order(twelve)[0] == "0"
    assert hash_set_order([*twelve, "k"])[0] == "!"
    assert hash_order(twelve)[0] == "!"
