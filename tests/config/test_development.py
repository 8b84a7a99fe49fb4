"""The defaults of brokers for development and tests."""

from __future__ import annotations

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.development import development_defaults
from kpybroker.config.replication_factors import out_of_reach


@pytest.mark.parametrize("brokers", [1, 2, 3, 9])
def test_brokers_can_meet_them_and_groups_do_not_wait(brokers: int) -> None:
    defaults = development_defaults(brokers)
    config = BrokerConfig(defaults)
    assert out_of_reach(config.static, brokers) == []
    assert config.get_int("group.initial.rebalance.delay.ms") == 0
    assert config.get_int("group.consumer.heartbeat.interval.ms") == 75
    assert config.get_int("group.consumer.assignment.interval.ms") == 0
    assert config.get_int("group.consumer.session.timeout.ms") == 45_000
    assert config.get_int("default.replication.factor") == min(brokers, 3)
    assert config.get_int("transaction.state.log.min.isr") == min(brokers, 2)


def test_a_session_may_be_as_short_as_a_test_needs() -> None:
    keys = {**development_defaults(), "group.consumer.session.timeout.ms": "1000"}
    assert BrokerConfig(keys).get_int("group.consumer.session.timeout.ms") == 1_000


def test_each_call_gives_a_dictionary_of_its_own() -> None:
    development_defaults()["broker.id"] = "7"
    assert development_defaults()["broker.id"] == "0"
