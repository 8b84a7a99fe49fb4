"""The group coordinator is built late: not while the controller has still to say who leads its partitions."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from kpybroker.broker.coordinators.coordinators import NAMED_WAIT_S, Coordinators
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from tests.support.brokers.fake_broker import FakeBroker, FakePartition, fake_broker

PARTITIONS = 3


@pytest.fixture
def clock() -> trio.testing.MockClock:
    """It stands still, however long the machine takes."""
    return trio.testing.MockClock()


def coordinators_of(broker: FakeBroker) -> Any:
    """Its metadata have no leader of the offsets topic yet."""
    broker.metadata.leaderless = {GROUP_METADATA_TOPIC_NAME}
    host: Any = broker
    return Coordinators(host, host.metadata, host, host, broker.replicas, host)


async def name_leaders(broker: FakeBroker) -> None:
    broker.metadata.leaderless = set()
    broker.metadata.news.set()
    await trio.testing.wait_all_tasks_blocked()


async def built(coordinators: Any) -> None:
    """A thread has part in it."""
    while coordinators.built_groups is None:
        await trio.lowlevel.checkpoint()


def led(coordinators: Any) -> list[int]:
    """Those that are served."""
    return sorted(coordinators.groups.partitions.shards)


async def test_groups_are_built_once_the_metadata_name_a_leader(clock: trio.testing.MockClock) -> None:
    async with fake_broker(PARTITIONS, leads=False) as broker:
        coordinators = coordinators_of(broker)
        for partition in broker.partitions.values():
            coordinators.on_elected(partition)
        await trio.testing.wait_all_tasks_blocked()
        assert coordinators.built_groups is None
        await name_leaders(broker)
        await built(coordinators)
        assert led(coordinators) == [0, 1, 2]


async def test_a_request_builds_groups_with_all_partitions_at_once(clock: trio.testing.MockClock) -> None:
    async with fake_broker(PARTITIONS, leads=False) as broker:
        coordinators = coordinators_of(broker)
        for index in (0, 2):
            coordinators.on_elected(broker.partitions[index])
        assert led(coordinators) == [0, 2]
        coordinators.on_elected(broker.partitions[1])
        coordinators.on_resigned(broker.partitions[2])
        assert led(coordinators) == [0, 1]
        await name_leaders(broker)
        assert led(coordinators) == [0, 1]


async def test_leadership_that_is_lost_before_groups_are_built_is_not_served(clock: trio.testing.MockClock) -> None:
    async with fake_broker(PARTITIONS, leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_elected(broker.partitions[0])
        coordinators.on_elected(broker.partitions[1])
        coordinators.on_resigned(broker.partitions[1])
        await name_leaders(broker)
        await built(coordinators)
        assert led(coordinators) == [0]


async def test_a_broker_that_follows_builds_nothing(clock: trio.testing.MockClock) -> None:
    async with fake_broker(leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_resigned(broker.partitions[0])
        await name_leaders(broker)
        assert coordinators.built_groups is None


async def test_metadata_that_do_not_come_are_not_waited_for_long(clock: trio.testing.MockClock) -> None:
    async with fake_broker(leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_elected(broker.partitions[0])
        await trio.testing.wait_all_tasks_blocked()
        assert coordinators.built_groups is None
        clock.jump(NAMED_WAIT_S)
        await built(coordinators)
        assert led(coordinators) == [0]


async def test_a_broker_that_stops_builds_no_groups(clock: trio.testing.MockClock) -> None:
    async with fake_broker(leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_elected(broker.partitions[0])
        coordinators.stop()
        await name_leaders(broker)
        assert coordinators.built_groups is None


async def test_another_topic_concerns_no_coordinator(clock: trio.testing.MockClock) -> None:
    async with fake_broker(leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_elected(FakePartition(0, "t"))
        await name_leaders(broker)
        assert coordinators.built_groups is None


async def test_a_deleted_topic_builds_groups_only_where_a_partition_of_theirs_is_led(
    clock: trio.testing.MockClock,
) -> None:
    async with fake_broker(leads=False) as broker:
        coordinators = coordinators_of(broker)
        coordinators.on_topic_deleted("t")
        assert coordinators.built_groups is None
        coordinators.on_elected(broker.partitions[0])
        coordinators.on_topic_deleted("t")
        assert led(coordinators) == [0]
