"""The tables with `releases` on top are the keys of Kafka 3.9.1, and of 4.3.1: types, defaults, rules, modes, lists."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.own import KAFKA_VERSION, OWN
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import (
    ADDED,
    CHANGED,
    INTERNAL,
    INTERNAL_IN_4,
    REMOVED,
    TOPIC_ADDED,
    TOPIC_CHANGED,
    keys_of,
    listed,
    listed_of_topics,
    topic_keys_of,
)
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.topic import UnknownTopicConfig, validate_topic_props
from kpybroker.config.values import LONG_MAX, ConfigError
from tests.config.keys.kafka_keys import FILES, defined, java_text

RELEASE = {"3.9.1": "3.9", "4.3.1": "4.3"}

OTHERWISE_HERE = {
    "listeners": "only the loopback by default",
    "node.id": "another name of broker.id, and not required",
    "controller.quorum.bootstrap.servers": "of KRaft: its addresses are not checked",
    "controller.quorum.voters": "of KRaft: its addresses are not checked",
    "group.consumer.assignors": "no class can be loaded: only the two that are built in",
    "group.consumer.migration.policy": "as Kafka 4 in both, where there are groups that it is about",
    "group.coordinator.rebalance.protocols": "3.9 does not know streams, which is harmless",
}
"""Broker keys that are not as in Kafka, and why."""

SAME_TEXT = {
    "gzip_level": "[1,...,9] or -1",
    "positive_or_minus_one": "The default value of -1 means that this will be set to the configured value of "
    "remote.log.manager.thread.pool.size, if available; otherwise, it defaults to 10.",
    "throttled_replicas": "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
}


def rule(validator: tuple[object, ...]) -> str:
    text = java_text(validator)
    return SAME_TEXT.get(text, text)


def rule_of_kafka(text: str) -> str:
    return "metadata_version" if text.startswith("[0.8.0, ") else text


@pytest.mark.parametrize("release", FILES)
def test_every_key_of_brokers_is_as_in_the_release(release: str) -> None:
    ours, kafkas = keys_of(RELEASE[release]), defined(release, "broker")
    assert kafkas.keys() <= ours.keys()
    differing = {}
    for name, key in kafkas.items():
        mine = ours[name]
        of_kafka = (key.type, key.default, rule_of_kafka(key.validator), key.importance, key.mode)
        of_ours = (mine.type, mine.default, rule(mine.validator), mine.importance, mine.mode)
        if of_ours != of_kafka and name not in OTHERWISE_HERE:
            differing[name] = (of_kafka, of_ours)
    assert differing == {}


@pytest.mark.parametrize("release", FILES)
def test_every_key_of_topics_is_as_in_the_release(release: str) -> None:
    ours, kafkas = topic_keys_of(RELEASE[release]), defined(release, "topic")
    assert kafkas.keys() == ours.keys()
    for name, key in kafkas.items():
        _, type_name, default, validator, importance, _, _ = ours[name]
        of_kafka = (key.type, key.default, rule_of_kafka(key.validator), key.importance)
        assert (type_name, default, rule(validator), importance) == of_kafka, name


@pytest.mark.parametrize("release", FILES)
def test_what_is_listed_is_what_the_release_lists(release: str) -> None:
    kafkas = {name for name, key in defined(release, "broker").items() if key.is_listed}
    for with_kafka_4 in (False, True):
        assert listed(RELEASE[release], with_kafka_4=with_kafka_4) - OWN == kafkas
    topics = {name for name, key in defined(release, "topic").items() if key.is_listed}
    assert listed_of_topics(RELEASE[release]) == topics


def test_without_a_release_the_keys_of_both_are_known_and_kafka_4s_are_listed_with_its_groups() -> None:
    both = {key for release in FILES for key in defined(release, "broker")}
    assert keys_of(None) == BROKER_KEYS
    assert BROKER_KEYS.keys() - OWN == both
    assert topic_keys_of(None) == TOPIC_KEYS
    first, second = (listed(None, with_kafka_4=with_kafka_4) for with_kafka_4 in (False, True))
    assert first == listed("3.9", with_kafka_4=False)
    assert second - first == {name for name in ADDED if name not in INTERNAL_IN_4}
    assert listed_of_topics(None) == listed_of_topics("3.9")


def test_the_ledger_has_nothing_that_is_the_same_in_both() -> None:
    of_3, of_4 = (defined(release, "broker") for release in FILES)
    assert of_3.keys() - of_4.keys() == REMOVED
    assert (of_4.keys() - of_3.keys()) | {"group.consumer.migration.policy"} == ADDED
    assert {name for name, key in of_3.items() if not key.is_listed} == INTERNAL
    assert {name for name, key in of_4.items() if not key.is_listed} == INTERNAL_IN_4
    for name, fields in CHANGED.items():
        assert all(getattr(BROKER_KEYS[name], field) != value for field, value in fields.items()), name
    assert TOPIC_CHANGED.keys() <= TOPIC_KEYS.keys()
    assert defined("4.3.1", "topic").keys() - defined("3.9.1", "topic").keys() == TOPIC_ADDED


@pytest.mark.parametrize("name", sorted(CHANGED))
def test_every_default_of_kafka_4_is_a_good_value(name: str) -> None:
    key = keys_of("4.3")[name]
    key.parse(key.default)


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2", "4.3"])
def test_a_broker_in_the_place_of_kafka_4_has_its_defaults_and_rules(release: str) -> None:
    config = BrokerConfig({KAFKA_VERSION: release, "log.dirs": "/a,/b", "zookeeper.connect": "h:1"})
    assert config.log_defaults.message_timestamp_after_max_ms == 3_600_000
    assert config.log_dirs == ("/a", "/b")
    assert config.get_str("zookeeper.connect") == "h:1", "removed, and of use here"
    assert BrokerConfig({KAFKA_VERSION: "3.9"}).log_defaults.message_timestamp_after_max_ms == LONG_MAX
    with pytest.raises(ConfigError, match="Value must be at least 1048576"):
        BrokerConfig({KAFKA_VERSION: release, "log.segment.bytes": "1000"})
    with pytest.raises(ConfigError, match="Value must be at least 1048576"):
        config.with_dynamic({"log.segment.bytes": "1000"}, {})


def test_topics_in_the_place_of_kafka_4_may_set_its_keys_only() -> None:
    validate_topic_props({"segment.bytes": "1000", "message.format.version": "3.0"}, release="3.9")
    with pytest.raises(ConfigError, match="Value must be at least 1048576"):
        validate_topic_props({"segment.bytes": "1000"}, release="4.3")
    with pytest.raises(UnknownTopicConfig):
        validate_topic_props({"message.format.version": "3.0"}, release="4.3")
    with pytest.raises(UnknownTopicConfig):
        validate_topic_props({"internal.segment.bytes": "1000"}, release="3.9")
    for release in (None, "4.3"):
        made = validate_topic_props({"internal.segment.bytes": "1000", "retention.ms": "5"}, release=release)
        assert made.segment_bytes == 1000
    assert validate_topic_props({"cleanup.policy": ""}, release="4.3").cleanup_policy == frozenset()
    assert validate_topic_props({"cleanup.policy": "delete,delete"}, release="4.3").cleanup_policy == {"delete"}
    with pytest.raises(ConfigError, match="values must not be empty"):
        validate_topic_props({"cleanup.policy": "delete,"}, release="4.3")
