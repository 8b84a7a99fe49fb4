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
from kpybroker.config.values import ConfigConflict

SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def test_every_key_has_a_sentence_and_keys_of_the_broker() -> None:
    assert GROUP_KEYS.keys() == DOCS.keys()
    for key in GROUP_KEYS.values():
        assert {key.default, key.lowest, key.highest} <= BROKER_KEYS.keys()


def test_without_values_of_its_own_a_group_has_the_brokers() -> None:
    config = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    assert effective(config, "g", {}) == ({SESSION: 50_000, HEARTBEAT: 5_000, ASSIGNMENT: 1_000}, [])


@pytest.mark.parametrize(
    ("name", "stored", "capped", "bound"),
    [
        (SESSION, "1", 45_000, "is below the broker's allowed minimum 45000"),
        (SESSION, "60001", 60_000, "exceeds the broker's allowed maximum 60000"),
        (HEARTBEAT, "1", 5_000, "is below the broker's allowed minimum 5000"),
        (HEARTBEAT, "15001", 15_000, "exceeds the broker's allowed maximum 15000"),
        (ASSIGNMENT, "15001", 15_000, "exceeds the broker's allowed maximum 15000"),
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
