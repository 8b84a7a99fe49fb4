"""Configuration keys are in Kafka's order. The expected orders are from responses of Kafka 3.9.1."""

from __future__ import annotations

from kpybroker.config.hash_order import hash_order, hash_set_order
from kpybroker.config.keys.releases import TOPIC_ADDED, topic_keys_of
from kpybroker.config.keys.topic import TOPIC_KEYS

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
    names = topic_keys_of("3.9")
    ordered = hash_order(names)
    assert ordered[: len(FIRST_OF_A_TOPIC)] == FIRST_OF_A_TOPIC
    assert sorted(ordered) == sorted(names)


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


def test_a_java_map_keeps_the_order_of_insertion_within_a_bucket() -> None:
    """The order of a topic's settings in a response of Kafka 4.3.1."""
    ordered = hash_set_order([name for name in TOPIC_KEYS if name in topic_keys_of("4.3") and name not in TOPIC_ADDED])
    assert ordered[:7] == [
        "compression.type",
        "remote.log.delete.on.disable",
        "leader.replication.throttled.replicas",
        "remote.storage.enable",
        "min.insync.replicas",
        "segment.jitter.ms",
        "remote.log.copy.disable",
    ]
    assert ordered.index("index.interval.bytes") + 1 == ordered.index("min.cleanable.dirty.ratio")
