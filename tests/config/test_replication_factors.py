"""Replication factors follow the number of brokers where coordination is embedded."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.status import HONOURED
from kpybroker.config.replication_factors import COUNTS_OF_BROKERS, Lowered, describe, out_of_reach

PRODUCTION = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


def effective(config: BrokerConfig) -> list[int]:
    """In the order of `COUNTS_OF_BROKERS`."""
    return [config.get_int(name) for name in COUNTS_OF_BROKERS]


@pytest.mark.parametrize(
    ("brokers", "unset", "production"),
    [
        (1, [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]),
        (2, [1, 1, 2, 2, 2, 2, 2], [2, 2, 2, 2, 2, 2, 2]),
        (3, [1, 1, 3, 3, 2, 3, 2], [3, 2, 3, 3, 2, 3, 2]),
        (5, [1, 1, 3, 3, 2, 3, 2], [3, 2, 3, 3, 2, 3, 2]),
    ],
)
def test_no_factor_is_above_the_number_of_brokers(brokers: int, unset: list[int], production: list[int]) -> None:
    for props, expected in (({}, unset), (PRODUCTION, production)):
        config = BrokerConfig(props)
        config.limit_factors(brokers)
        assert effective(config) == expected


def test_those_that_were_set_are_reported_with_both_values_and_the_others_are_not() -> None:
    config = BrokerConfig({"offsets.topic.replication.factor": "3", "transaction.state.log.min.isr": "1"})
    lowered = config.limit_factors(1)
    assert lowered == [Lowered("offsets.topic.replication.factor", 3, 1)]
    assert describe(lowered, 1) == (
        "This cluster has 1 broker, so that these settings could never be met and are lowered: "
        "offsets.topic.replication.factor from 3 to 1"
    )
    assert config.get_int("transaction.state.log.replication.factor") == 1


def test_what_can_be_met_is_left_alone() -> None:
    config = BrokerConfig(PRODUCTION)
    assert config.limit_factors(3) == []
    assert config.static.items() >= PRODUCTION.items()
    assert out_of_reach({}, 3) == []


def test_topics_inherit_the_lowered_minimum_and_a_dynamic_one_still_wins() -> None:
    config = BrokerConfig({"min.insync.replicas": "2"})
    assert config.log_defaults.min_insync_replicas == 2
    config.limit_factors(1)
    assert config.log_defaults.min_insync_replicas == 1
    config.set_dynamic({}, {"min.insync.replicas": "2"})
    assert config.get_int("min.insync.replicas") == 2


def test_every_key_that_counts_brokers_is_among_them() -> None:
    counting = {name for name in BROKER_KEYS if name.endswith(("replication.factor", "min.isr", "insync.replicas"))}
    unserved = {name for name in counting if BROKER_KEYS[name].status != HONOURED}
    assert counting - unserved == set(COUNTS_OF_BROKERS)
