"""What holds for a group whose stored values are not within the broker's bounds.

What a client may set is compared with Kafka in `tests/broker/handlers/configuration/test_group_configs.py`.
"""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.docs.group_resource import DOCS
from kpybroker.config.groups.keys import GROUP_KEYS
from kpybroker.config.groups.rules import check_group_props, effective
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.values import ConfigConflict, ConfigError

SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def test_every_key_has_a_sentence_and_keys_of_the_broker() -> None:
    assert GROUP_KEYS.keys() == DOCS.keys()
    for key in GROUP_KEYS.values():
        assert {*(key.bounds or ()), key.default} - {None} <= BROKER_KEYS.keys()
        assert key.default is not None or key.bounds is None


def test_without_values_of_its_own_a_group_has_the_brokers() -> None:
    config = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    assert effective(config, "g", {}) == (
        {
            SESSION: 50_000,
            HEARTBEAT: 5_000,
            ASSIGNMENT: 1_000,
            "share.session.timeout.ms": 45_000,
            "share.heartbeat.interval.ms": 5_000,
            "share.record.lock.duration.ms": 30_000,
            "share.delivery.count.limit": 5,
            "share.partition.max.record.locks": 2_000,
            "share.auto.offset.reset": "latest",
            "share.isolation.level": "read_uncommitted",
            "share.renew.acknowledge.enable": True,
            "share.assignment.interval.ms": 1_000,
            "streams.session.timeout.ms": 45_000,
            "streams.heartbeat.interval.ms": 5_000,
            "streams.num.standby.replicas": 0,
            "streams.initial.rebalance.delay.ms": 3_000,
            "streams.assignment.interval.ms": 1_000,
        },
        [],
    )


def test_the_default_of_record_locks_is_the_brokers_only_where_it_is_set() -> None:
    """DescribeConfigs of a broker shows 200, that of Kafka 3.9's early access; groups have Kafka 4.3's."""
    key, locks = "group.share.partition.max.record.locks", "share.partition.max.record.locks"
    assert BrokerConfig().get_int(key) == 200
    assert effective(BrokerConfig({key: "300"}), "g", {}).values[locks] == 300
    assert effective(BrokerConfig({key: "300"}), "g", {locks: "5000"}).values[locks] == 4_000


@pytest.mark.parametrize(
    "value",
    ["latest", "earliest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:pt0s", "by_duration:+P1D"],
)
def test_where_a_share_group_may_begin(value: str) -> None:
    assert effective(BrokerConfig(), "g", {"share.auto.offset.reset": value}).values["share.auto.offset.reset"] == value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        *(
            (
                "share.auto.offset.reset",
                value,
                f"Invalid value {value} for configuration share.auto.offset.reset: Invalid value `{value}` for "
                "configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
                "'by_duration:<PnDTnHnMn.nS>'.",
            )
            for value in ("none", "LATEST", "by_duration", "by_duration:", "by_duration:-PT1H", "by_duration:PT", "")
        ),
        (
            "share.isolation.level",
            "READ_COMMITTED",
            "Invalid value READ_COMMITTED for configuration share.isolation.level: String must be one of: "
            "read_committed, read_uncommitted",
        ),
        ("share.delivery.count.limit", "11", "share.delivery.count.limit must be less than or equal to"),
        ("share.record.lock.duration.ms", "14999", "share.record.lock.duration.ms must be greater than or equal to"),
        ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to"),
        ("streams.session.timeout.ms", "44999", "streams.session.timeout.ms must be greater than or equal to"),
        ("streams.initial.rebalance.delay.ms", "-1", "Invalid value -1 for configuration streams.initial.rebalance"),
    ],
)
def test_what_a_group_of_another_kind_may_not_set(name: str, value: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_group_props(BrokerConfig(), {name: value})
    assert str(refused.value).startswith(text)


@pytest.mark.parametrize(
    ("name", "stored", "capped", "bound"),
    [
        (SESSION, "1", 45_000, "is below the broker's allowed minimum 45000"),
        (SESSION, "60001", 60_000, "exceeds the broker's allowed maximum 60000"),
        (HEARTBEAT, "1", 5_000, "is below the broker's allowed minimum 5000"),
        (HEARTBEAT, "15001", 15_000, "exceeds the broker's allowed maximum 15000"),
        (ASSIGNMENT, "15001", 15_000, "exceeds the broker's allowed maximum 15000"),
        ("streams.num.standby.replicas", "3", 2, "exceeds the broker's allowed maximum 2"),
    ],
)
def test_what_is_out_of_bounds_is_capped_with_a_warning(name: str, stored: str, capped: int, bound: str) -> None:
    values, (warning,) = effective(BrokerConfig(), "g", {name: stored})
    assert values[name] == capped
    assert warning == (
        f"The group config '{name}' for group 'g' has value {stored} which {bound}. "
        f"The effective value will be capped to {capped}."
    )


def test_a_dynamic_default_out_of_bounds_is_capped_with_a_warning() -> None:
    config = BrokerConfig({"group.consumer.max.assignment.interval.ms": "2000"})
    config.set_dynamic({}, {"group.consumer.assignment.interval.ms": "3000"})
    values, (warning,) = effective(config, "g", {})
    assert values[ASSIGNMENT] == 2_000
    assert warning == (
        "The config 'group.consumer.assignment.interval.ms' has value 3000 which exceeds the broker's allowed maximum "
        "2000. The effective value will be capped to 2000."
    )


@pytest.mark.parametrize("stored", ["", "x", "0", "-1", "99999999999"])
def test_what_is_no_value_leaves_the_brokers(stored: str) -> None:
    values, (warning,) = effective(BrokerConfig(), "g", {SESSION: stored, "unknown": "1"})
    assert values[SESSION] == 45_000
    assert warning.startswith(f"The group config of group 'g' is not used: Invalid value {stored} for")


def test_a_session_as_short_as_a_heartbeat_is_refused_and_warned_of() -> None:
    config = BrokerConfig(
        {"group.consumer.min.session.timeout.ms": "5000", "group.consumer.session.timeout.ms": "50000"}
    )
    with pytest.raises(ConfigConflict, match=f"^{SESSION} must be greater than {HEARTBEAT}$"):
        check_group_props(config, {SESSION: "5000"})
    _, (warning,) = effective(config, "g", {SESSION: "5000"})
    assert warning.startswith(f"The effective {SESSION} (5000) for group 'g' is not greater than {HEARTBEAT} (5000).")
