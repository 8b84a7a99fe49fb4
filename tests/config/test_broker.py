"""BrokerConfig: live typed look-ups over four layers."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig, merged
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.values import ConfigError


def test_look_ups_are_typed() -> None:
    config = BrokerConfig({"num.partitions": "3", "log.dirs": "/a, /b", "log.cleaner.min.cleanable.ratio": "0.25"})
    assert config.get_int("num.partitions") == 3
    assert config.get_bool("auto.create.topics.enable") is True
    assert config.get_float("log.cleaner.min.cleanable.ratio") == 0.25
    assert config.get_list("log.dirs") == ("/a", "/b") == config.log_dirs
    assert config.get_str("zookeeper.connect") == ""
    assert config.get_optional_int("log.roll.ms") is None


def test_a_number_without_a_value_is_an_error() -> None:
    with pytest.raises(ConfigError):
        BrokerConfig().get_int("log.roll.ms")


def test_an_unknown_name_raises_key_error() -> None:
    with pytest.raises(KeyError):
        BrokerConfig().get_int("no.such.key")


def test_every_key_can_be_read() -> None:
    config = BrokerConfig()
    for name in BROKER_KEYS:
        config.get(name)


def test_a_bad_value_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"for configuration num\.partitions"):
        BrokerConfig({"num.partitions": "0"})


def test_a_listeners_own_key_is_checked_under_its_own_name() -> None:
    with pytest.raises(ConfigError, match=r"for configuration listener\.name\.x\.max\.connections:"):
        BrokerConfig({"listener.name.x.max.connections": "-1"})


def test_a_listeners_own_key_takes_precedence_over_the_plain_one() -> None:
    config = BrokerConfig({"listener.name.a.max.connections": "3", "max.connections": "9"})
    assert config.get_int("listener.name.a.max.connections") == 3
    assert config.get_int("listener.name.b.max.connections") == 9


def test_broker_id_and_node_id_are_one_value() -> None:
    assert BrokerConfig({"node.id": "4"}).get_int("broker.id") == 4
    assert BrokerConfig({"broker.id": "5"}).get_int("node.id") == 5


@pytest.mark.parametrize(
    ("props", "expected"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-7"}, -1),
    ],
)
def test_the_finest_unit_wins(props: dict[str, str], expected: int) -> None:
    config = BrokerConfig(props)
    assert config.milliseconds("log.retention") == expected
    assert config.log_defaults.retention_ms == expected


def test_an_upper_layer_hides_synonyms_below() -> None:
    static = {"log.retention.ms": "1", "num.partitions": "2"}
    assert merged(static, {"log.retention.hours": "3"}, {}) == {"log.retention.hours": "3", "num.partitions": "2"}


def test_dynamic_values_are_live_and_ordered() -> None:
    config = BrokerConfig({"log.retention.ms": "10", "message.max.bytes": "100"})
    seen: list[frozenset[str]] = []
    config.on_change(seen.append)
    assert config.set_dynamic({}, {"message.max.bytes": "200"}) == {"message.max.bytes"}
    assert config.get_int("message.max.bytes") == 200
    config.set_dynamic({"message.max.bytes": "300"}, {"message.max.bytes": "200"})
    assert config.get_int("message.max.bytes") == 300
    assert config.log_defaults.max_message_bytes == 300
    config.set_dynamic({}, {})
    assert config.get_int("message.max.bytes") == 100
    assert seen == [frozenset({"message.max.bytes"})] * 3


def test_no_callback_runs_when_nothing_changed() -> None:
    config = BrokerConfig({"message.max.bytes": "100"})
    seen: list[frozenset[str]] = []
    config.on_change(seen.append)
    assert config.set_dynamic({"message.max.bytes": "100"}, {}) == frozenset()
    assert seen == []


def test_a_bad_dynamic_value_changes_nothing() -> None:
    config = BrokerConfig()
    with pytest.raises(ConfigError):
        config.set_dynamic({"message.max.bytes": "x"}, {})
    assert config.get_int("message.max.bytes") == 1048588
    assert config.dynamic_broker == {}


def test_without_listeners_only_loopback_is_bound() -> None:
    (endpoint,) = BrokerConfig().listeners
    assert (endpoint.host, endpoint.port) == ("127.0.0.1", 9092)


def test_a_listener_without_host_is_every_interface() -> None:
    (endpoint,) = BrokerConfig({"listeners": "PLAINTEXT://:9092"}).listeners
    assert endpoint.host == ""


def test_topic_defaults_follow_the_brokers_keys() -> None:
    config = BrokerConfig(
        {
            "log.roll.hours": "2",
            "log.roll.jitter.ms": "5",
            "log.flush.scheduler.interval.ms": "7",
            "log.cleanup.policy": "compact",
            "log.message.timestamp.difference.max.ms": "11",
            "min.insync.replicas": "2",
        }
    )
    defaults = config.log_defaults
    assert (defaults.segment_ms, defaults.segment_jitter_ms, defaults.flush_ms) == (7_200_000, 5, 7)
    assert defaults.cleanup_policy == {"compact"}
    assert defaults.message_timestamp_before_max_ms == 11
    assert defaults.min_insync_replicas == 2
    assert defaults.overridden == frozenset()
