"""Which changes are allowed while the broker runs. The tests of the handlers compare the error texts with Kafka's."""

from __future__ import annotations

import os

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.dynamic import (
    AlterConfigOp,
    NotAList,
    OpType,
    UnknownConfigName,
    apply_ops,
    broker_list_default,
    storable,
    topic_list_default,
    usable_dynamic,
    validate_dynamic,
)
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.sources.passwords import decoder
from kpybroker.config.values import ConfigError

POLICY = "cleanup.policy"


def after(op: OpType, value: str | None, **props: str) -> dict[str, str]:
    named = {name.replace("_", "."): text for name, text in props.items()}
    return apply_ops(named, [AlterConfigOp(POLICY, op, value)], topic_list_default)


def test_set_and_delete() -> None:
    assert after(OpType.SET, "compact") == {POLICY: "compact"}
    assert after(OpType.DELETE, None, cleanup_policy="compact") == {}
    assert after(OpType.DELETE, None) == {}


def test_append_starts_from_the_default_and_adds_what_is_new() -> None:
    assert after(OpType.APPEND, "compact,delete") == {POLICY: "delete,compact"}
    assert after(OpType.APPEND, "delete", cleanup_policy="compact") == {POLICY: "compact,delete"}


def test_subtract_takes_one_occurrence_each() -> None:
    assert after(OpType.SUBTRACT, "delete", cleanup_policy="compact,delete,delete") == {POLICY: "compact,delete"}
    assert after(OpType.SUBTRACT, "delete") == {POLICY: ""}


def test_operations_apply_in_order() -> None:
    ops = [AlterConfigOp("a", OpType.SET, "1"), AlterConfigOp("a", OpType.SET, "2")]
    assert apply_ops({}, ops, topic_list_default) == {"a": "2"}


def test_only_lists_are_appended_to() -> None:
    with pytest.raises(NotAList):
        apply_ops({}, [AlterConfigOp("retention.ms", OpType.APPEND, "1")], topic_list_default)
    with pytest.raises(UnknownConfigName):
        apply_ops({}, [AlterConfigOp("nope", OpType.SUBTRACT, "1")], broker_list_default)


@pytest.mark.parametrize(
    ("props", "per_broker"),
    [
        ({"message.max.bytes": "5"}, True),
        ({"message.max.bytes": "5"}, False),
        ({"custom.key": "x"}, True),
        ({"listener.name.x.max.connections": "5"}, False),
        ({"leader.replication.throttled.rate": "5"}, True),
        ({"num.io.threads": "16"}, True),
        ({"num.io.threads": "4"}, True),
        ({"log.local.retention.ms": "5"}, True),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, True),
    ],
)
def test_an_allowed_change_passes(props: dict[str, str], per_broker: bool) -> None:
    validate_dynamic(BrokerConfig(), props, per_broker)


@pytest.mark.parametrize(
    ("props", "per_broker", "sentence"),
    [
        ({"log.dirs": "/x"}, True, "Cannot update these configs dynamically: Set(log.dirs)"),
        ({"ssl.keystore.type": "x"}, True, "only per-listener using the listener prefix"),
        ({"listener.name.x.ssl.keystore.type": "x"}, False, "broker id must be specified"),
        ({"listeners": "PLAINTEXT://:1"}, False, "broker id must be specified"),
        ({"listeners": "PLAINTEXT://:1"}, True, "listeners cannot be changed while this broker runs"),
        ({"message.max.bytes": "x"}, True, "Not a number of type INT"),
        ({"listener.name.x.max.connections": "-5"}, True, "Value must be at least 0"),
        ({"max.connections": "0"}, True, "Invalid max.connections 0"),
        ({"max.connection.creation.rate": "0"}, False, "Invalid max.connection.creation.rate 0"),
        ({"num.io.threads": "17"}, True, "not be greater than double the current value 8"),
        ({"num.io.threads": "3"}, True, "at least half the current value 8"),
        ({"log.cleaner.threads": "0"}, True, "Log cleaner threads should be at least 1"),
        ({"log.cleaner.threads": "3"}, True, "more than double the current value 1"),
        ({"log.local.retention.ms": "-1"}, True, "Value must not be -1 as log.retention.ms value is set as"),
        ({"log.local.retention.ms": "99999999999"}, True, "Value must not be more than log.retention.ms"),
    ],
)
def test_a_forbidden_change_is_refused(props: dict[str, str], per_broker: bool, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_dynamic(BrokerConfig(), props, per_broker)
    assert sentence in str(caught.value)


def test_a_default_is_checked_under_this_brokers_own_layer() -> None:
    config = BrokerConfig()
    config.set_dynamic({"num.io.threads": "16"}, {})
    validate_dynamic(config, {"num.io.threads": "64"}, False)  # hidden by the broker's own 16


def test_passwords_are_stored_encoded_and_only_with_a_secret() -> None:
    props = {"listener.name.x.ssl.key.password": "geheim", "message.max.bytes": "1"}
    with pytest.raises(ConfigError, match="Password encoder secret not configured"):
        storable(BrokerConfig(), props, True, os.urandom)
    config = BrokerConfig({"password.encoder.secret": "s"})
    with pytest.raises(ConfigError, match="only at broker level"):
        storable(config, props, False, os.urandom)
    kept = storable(config, props, True, os.urandom)
    assert kept["message.max.bytes"] == "1"
    assert "geheim" not in kept["listener.name.x.ssl.key.password"]
    assert usable_dynamic(kept, BROKER_KEYS, True, decoder(config)) == (props, {})
    for decode in (None, decoder(BrokerConfig({"password.encoder.secret": "another"}))):
        usable, ignored = usable_dynamic(kept, BROKER_KEYS, True, decode)
        assert usable == {"message.max.bytes": "1"}
        assert "password.encoder.secret is " in ignored["listener.name.x.ssl.key.password"]
    assert storable(BrokerConfig(), {"message.max.bytes": "1"}, True, os.urandom) == {"message.max.bytes": "1"}


def test_values_in_the_tree_that_are_not_allowed_are_ignored() -> None:
    stored = {
        "message.max.bytes": "5",
        "log.retention.ms": "x",
        "log.dirs": "/x",
        "ssl.keystore.type": "JKS",
        "listener.name.x.ssl.key.password": "encoded",
        "listeners": "PLAINTEXT://:1",
        "custom.key": "1",
    }
    usable, ignored = usable_dynamic(stored, BROKER_KEYS, per_broker=True)
    assert usable == {"message.max.bytes": "5", "custom.key": "1"}
    assert ignored.keys() == stored.keys() - usable.keys()
    usable, ignored = usable_dynamic({"principal.builder.class": "X"}, BROKER_KEYS, per_broker=False)
    assert usable == {}
    assert ignored == {"principal.builder.class": "it can be set for one broker only"}
