"""LogConfig: topic overrides on broker defaults."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.topic import (
    KAFKA_DEFAULTS,
    LogConfig,
    UnknownTopicConfig,
    field_name,
    parse_topic_value,
    validate_topic_props,
)
from kpybroker.config.values import LONG_MAX, ConfigConflict, ConfigError, ConfigTextError


def test_every_key_is_a_field_with_kafkas_default() -> None:
    fields = {field.name for field in dataclasses.fields(LogConfig) if field.init}
    assert fields == {field_name(key) for key in TOPIC_KEYS} | {"overridden"}
    for key, row in TOPIC_KEYS.items():
        value: Any = None if row[2] is None else parse_topic_value(key, row[2])
        assert getattr(KAFKA_DEFAULTS, field_name(key)) == (frozenset(value) if key == "cleanup.policy" else value)


def test_overrides_take_precedence_over_the_brokers_defaults() -> None:
    defaults = dataclasses.replace(KAFKA_DEFAULTS, retention_ms=5, segment_bytes=100)
    config = LogConfig.from_props({"retention.ms": "7", "cleanup.policy": "compact,delete"}, defaults)
    assert (config.retention_ms, config.segment_bytes) == (7, 100)
    assert config.compact
    assert config.delete
    assert config.overridden == {"retention.ms", "cleanup.policy"}


def test_without_overrides_the_defaults_are_the_configuration() -> None:
    assert LogConfig.from_props({}, KAFKA_DEFAULTS) is KAFKA_DEFAULTS


def test_a_key_of_another_version_in_the_tree_is_ignored() -> None:
    assert LogConfig.from_props({"key.of.the.future": "1"}) == KAFKA_DEFAULTS


def test_the_older_timestamp_key_gives_the_newer_ones_their_value() -> None:
    config = LogConfig.from_props({"message.timestamp.difference.max.ms": "9", "message.timestamp.after.max.ms": "3"})
    assert (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms) == (9, 3)


def test_a_newer_timestamp_key_of_the_broker_takes_precedence_over_the_topics_older_one() -> None:
    defaults = dataclasses.replace(KAFKA_DEFAULTS, message_timestamp_before_max_ms=4)
    config = LogConfig.from_props({"message.timestamp.difference.max.ms": "9"}, defaults)
    assert (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms) == (4, 9)


def test_other_overrides_leave_timestamp_bounds_alone() -> None:
    assert LogConfig.from_props({"retention.ms": "1"}).message_timestamp_before_max_ms == LONG_MAX


@pytest.mark.parametrize(
    ("props", "error", "sentence"),
    [
        ({"nope": "1"}, UnknownTopicConfig, "Unknown topic config name: nope"),
        (
            {"segment.bytes": "1"},
            ConfigError,
            "Invalid value 1 for configuration segment.bytes: Value must be at least 14",
        ),
        (
            {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "2"},
            ConfigConflict,
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (2)",
        ),
        ({"remote.log.copy.disable": "true"}, ConfigConflict, "under Zookeeper's mode"),
        ({"remote.storage.enable": "true"}, ConfigTextError, "Tiered Storage functionality is disabled"),
    ],
)
def test_bad_topic_settings_are_refused(props: dict[str, str], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        validate_topic_props(props)
    assert sentence in str(caught.value)


def test_lags_are_compared_with_the_brokers_defaults_too() -> None:
    defaults = dataclasses.replace(KAFKA_DEFAULTS, max_compaction_lag_ms=4)
    with pytest.raises(ConfigConflict):
        validate_topic_props({"min.compaction.lag.ms": "5"}, defaults)
