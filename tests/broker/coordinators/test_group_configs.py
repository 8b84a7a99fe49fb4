"""What groups set for themselves reaches their machines: own values, the broker's, and the broker's bounds."""

from __future__ import annotations

import pytest

from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.modern_group.values import ModernGroupConfig
from kpybroker.wire import znodes


@pytest.mark.parametrize("group_id", ["g", "a/b c%é", ".", "..", "<default>", "\x00"])
def test_a_group_is_found_by_its_name_in_the_tree_until_it_sets_nothing(group_id: str) -> None:
    configs = GroupConfigs(BrokerConfig())
    entity = znodes.group_entity(group_id)
    assert "/" not in entity
    assert entity.strip(".")
    configs.update(entity, {"consumer.session.timeout.ms": "50000"})
    assert configs.of(group_id) == ModernGroupConfig(50_000, 5_000, 1_000)
    assert configs.of("other") == ModernGroupConfig()
    configs.update(entity, {})
    assert configs.of(group_id) == ModernGroupConfig()


def test_a_new_default_of_the_brokers_holds_at_once_for_groups_without_a_value_of_their_own() -> None:
    config = BrokerConfig()
    configs = GroupConfigs(config)
    configs.update("own", {"consumer.assignment.interval.ms": "7"})
    configs.update("other", {"consumer.heartbeat.interval.ms": "6000"})
    for interval_ms in (0, 2_000):
        config.set_dynamic({}, {"group.consumer.assignment.interval.ms": str(interval_ms)})
        assert configs.of("g").assignment_interval_ms == interval_ms
        assert configs.of("own").assignment_interval_ms == 7
        assert configs.of("other") == ModernGroupConfig(45_000, 6_000, interval_ms)
    configs.update("other", {})
    config.set_dynamic({}, {})
    assert configs.of("other") == configs.of("g") == ModernGroupConfig()


def test_values_out_of_bounds_are_capped_and_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    configs = GroupConfigs(BrokerConfig({"group.consumer.max.heartbeat.interval.ms": "9000"}))
    configs.update("g", {"consumer.heartbeat.interval.ms": "10000"})
    assert configs.of("g").heartbeat_interval_ms == 9_000
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "exceeds the broker's allowed maximum 9000" in caplog.text


def test_a_broker_changes_the_interval_of_its_groups_while_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    config = BrokerConfig({"group.consumer.max.assignment.interval.ms": "9000"})
    configs = GroupConfigs(config)
    configs.update("own", {"consumer.assignment.interval.ms": "3000"})
    configs.update("part", {"consumer.session.timeout.ms": "50000"})
    interval = "group.consumer.assignment.interval.ms"

    def intervals() -> list[int]:
        return [configs.of(group_id).assignment_interval_ms for group_id in ("own", "part", "none")]

    assert intervals() == [3_000, 1_000, 1_000]
    config.set_dynamic({}, {interval: "2000"})
    assert intervals() == [3_000, 2_000, 2_000]
    config.set_dynamic({interval: "2500"}, {interval: "2000"})
    assert intervals() == [3_000, 2_500, 2_500]
    assert configs.of("part").session_timeout_ms == 50_000
    assert not caplog.records
    config.set_dynamic({interval: "20000"}, {})
    assert intervals() == [3_000, 9_000, 9_000]
    assert "exceeds the broker's allowed maximum 9000" in caplog.text
    configs.update("own", {})
    config.set_dynamic({}, {})
    assert intervals() == [1_000, 1_000, 1_000]
