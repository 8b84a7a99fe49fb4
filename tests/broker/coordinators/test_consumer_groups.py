"""What consumer groups need of a broker: settings, topics as they change, and what their machines have it do."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from kpybroker.broker.cluster.metadata_cache import AliveBroker, MetadataSnapshot
from kpybroker.broker.coordinators.consumer_groups import ConsumerGroupWork, consumer_surroundings
from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.broker.coordinators.groups import allows_groups
from kpybroker.broker.loop.host import Host
from kpybroker.config.broker import BrokerConfig
from kpybroker.config.values import ConfigError
from kpybroker.core.consumer_group.values import ConsumerGroupLimits, MigrationPolicy, ResolvedPattern, ResolvePatterns
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.modern_group.values import ModernGroupConfig, TopicMetadata, Topics
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.fake_broker import fake_broker
from tests.support.requests.group_requests import commit

State = UpdateMetadataRequest.UpdateMetadataPartitionState
NOW_MS = 1_000


def snapshot(racks: Mapping[int, str | None] | None = None, /, **topics: int) -> MetadataSnapshot:
    """Topics with so many partitions, each on the brokers 1 and 2; their names are their ids."""
    ids = {name: name.encode().ljust(16) for name in topics}
    return MetadataSnapshot(
        {
            name: {index: State(topic_name=name, partition_index=index, replicas=[1, 2]) for index in range(count)}
            for name, count in topics.items()
        },
        ids,
        {topic_id: name for name, topic_id in ids.items()},
        1,
        {broker_id: AliveBroker(broker_id, rack, {}) for broker_id, rack in (racks or {}).items()},
    )


class Heard:
    """A machine, as far as `on_topics_changed` goes."""

    def __init__(self) -> None:
        self.calls: list[tuple[set[str], bool]] = []
        self.topics: Topics | None = None

    def on_topics_changed(self, topics: Topics, changed: list[str], *, has_new: bool) -> None:
        assert self.topics is None or topics.version > self.topics.version
        self.topics = topics
        self.calls.append((set(changed), has_new))


def work(first: MetadataSnapshot) -> ConsumerGroupWork:
    host = SimpleNamespace(config=BrokerConfig(), clock=SimpleNamespace(time_ms=lambda: NOW_MS))
    return ConsumerGroupWork(cast(Host, host), first, GroupConfigs(BrokerConfig()).of)


def test_settings_are_the_brokers_and_the_first_assignor_is_the_default() -> None:
    config = BrokerConfig(
        {
            "group.consumer.session.timeout.ms": "50000",
            "group.consumer.heartbeat.interval.ms": "6000",
            "group.consumer.assignment.interval.ms": "7",
            "group.consumer.max.size": "3",
            "group.consumer.regex.refresh.interval.ms": "20000",
            "group.consumer.migration.policy": "UPGRADE",
            "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",
        }
    )
    found = consumer_surroundings(config, GroupConfigs(config).of)
    assert found.config_of("any") == ModernGroupConfig(50_000, 6_000, 7)
    assert (found.limits.max_size, found.limits.regex_refresh_interval_ms) == (3, 20_000)
    assert found.limits.migration_policy is MigrationPolicy.UPGRADE
    assert list(found.assignors) == ["range", "uniform"]
    by_default = consumer_surroundings(BrokerConfig(), GroupConfigs(BrokerConfig()).of)
    assert list(by_default.assignors) == ["uniform", "range"]
    assert by_default.config_of("any") == ModernGroupConfig()
    assert by_default.limits == ConsumerGroupLimits()
    assert found.pattern_problem("a.*") is None
    assert found.pattern_problem("(a") == "missing closing )"


def test_an_assignor_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"group\.consumer\.assignors"):
        BrokerConfig({"group.consumer.assignors": "com.example.Mine"})


@pytest.mark.parametrize(("text", "allowed"), [(None, True), ("classic", False), ("classic,consumer", True)])
def test_a_broker_that_names_protocols_serves_those_alone(text: str | None, allowed: bool) -> None:
    props = {} if text is None else {"group.coordinator.rebalance.protocols": text}
    assert allows_groups(BrokerConfig(props), "consumer") is allowed


def test_topics_are_as_the_metadata_says() -> None:
    topics = work(snapshot({1: "r1", 2: None}, t=2)).topics
    topic = TopicMetadata(b"t".ljust(16), "t", 2, (("r1",), ("r1",)))
    assert topics.by_name("t") == topics.by_id(topic.topic_id) == topic
    assert topics.by_name("u") is topics.by_id(b"u".ljust(16)) is None
    assert topics.version == NOW_MS
    assert work(snapshot(t=2)).topics.by_name("t") == TopicMetadata(topic.topic_id, "t", 2)
    without_id = snapshot(t=2)._replace(topic_ids={}, topic_names={})
    assert work(without_id).topics.by_name("t") is None


def test_machines_hear_what_is_new_altered_or_gone_and_versions_rise() -> None:
    one, machine = work(snapshot(t=2, u=1)), Heard()

    def follow(now: MetadataSnapshot, *named: str) -> tuple[set[str], bool]:
        one.follow(now, named)(cast(GroupMachine, machine))
        assert machine.topics is one.topics
        return machine.calls[-1]

    assert follow(snapshot(t=2, u=1), "t", "u") == (set(), False)
    assert follow(snapshot(t=3, u=1), "t", "u") == ({"t"}, False)
    assert follow(snapshot(t=3, u=1, v=1), "v") == ({"v"}, True)
    assert follow(snapshot(t=3, v=1), "u") == ({"u"}, False)
    again = snapshot(t=3, v=1)._replace(topic_ids={"t": b"t".ljust(16), "v": b"another".ljust(16)})
    assert follow(again, "v", "t") == ({"v"}, True)
    assert one.topics.id_of("u") == ZERO_UUID


def test_a_broker_that_is_down_keeps_its_rack_and_one_that_comes_with_another_changes_topics() -> None:
    one, machine = work(snapshot({1: "r1", 2: "r2"}, t=1)), Heard()
    none: set[str] = set()
    for racks, changed in (({1: "r1"}, none), ({1: "r1", 2: "r2"}, none), ({1: "r1", 2: "r3"}, {"t"})):
        one.follow(snapshot(racks, t=1), ["t"])(cast(GroupMachine, machine))
        assert machine.calls[-1] == (changed, False)


async def test_a_pattern_that_a_kafka_took_and_this_broker_does_not_matches_nothing() -> None:
    results: list[Any] = []
    heard = SimpleNamespace(on_patterns_resolved=lambda group_id, resolved, now: results.append((group_id, resolved)))
    machine = cast(GroupMachine, heard)
    async with fake_broker() as broker:
        one = broker.groups._consumers
        one.follow(snapshot(t=1, u=1), ["t", "u"])
        topics, context = one.topics, broker.context(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
        ran = trio.Event()
        one.perform(machine, ResolvePatterns("g", frozenset({"t", "(?=x)"}), context), lambda outcome: ran.set())
        assert not results, "a result within `perform`"
        await ran.wait()
    found_at = results[0][1]["t"].timestamp_ms
    assert results == [
        (
            "g",
            {
                "t": ResolvedPattern(frozenset({"t"}), topics.version, found_at),
                "(?=x)": ResolvedPattern(frozenset(), topics.version, found_at),
            },
        )
    ]


async def test_a_partition_that_is_being_loaded_hears_of_topics_too() -> None:
    async with fake_broker() as broker:
        await broker.groups.ask(commit())
        broker.groups.on_resigned(0, 0)
        broker.groups.on_elected(0, 1)
        while not broker.partitions[0].online_log().slices:  # it has a machine, which reads them
            await trio.lowlevel.checkpoint()
        assert broker.groups.partitions.is_loading
        for _ in range(2):
            broker.metadata.snapshot = snapshot(t=1)
            broker.groups._on_topics_named(["t"])
            await broker.loaded()
            (machine,) = broker.groups.partitions.machines
            assert machine._modern.consumers.shared.topics is broker.groups._consumers.topics


async def test_a_machine_has_the_topics_before_its_first_heartbeat() -> None:
    async with fake_broker() as broker:
        (machine,) = broker.groups.partitions.machines
        assert machine._modern.consumers.shared.topics is broker.groups._consumers.topics
