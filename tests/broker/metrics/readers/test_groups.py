"""Groups of both protocols as the metrics count them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.groups import GroupsReader
from kpybroker.metrics.rates import TICK_S
from kpybroker.metrics.reading import Tags
from kpybroker.metrics.tables import coordinators as c
from tests.broker.handlers.groups.group_scenarios import commit_request
from tests.support.brokers.running_broker import ask, create_topic
from tests.support.requests.consumer_group_requests import Member, group_broker


async def values(reader: GroupsReader) -> dict[tuple[str, Tags], Any]:
    """By name or attribute, and tags."""
    return {
        (family.name or family.attribute, tuple(row)): value
        for reading in await reader.read(YieldBudget())
        for family, column in reading.columns
        if family in c.FAMILIES
        for row, value in zip(reading.rows, column, strict=True)
    }


async def test_groups_are_counted_by_protocol_and_consumer_groups_by_state(tmp_path: Path) -> None:
    async with group_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        assert broker.metrics is not None
        (reader,) = [one for one in broker.metrics.readers if isinstance(one, GroupsReader)]
        await create_topic(broker, "t", 2)
        request = commit_request({"t": {0: 5}})
        request.group_id = "simple"
        await ask(broker, request, 9)
        stable, moving = Member(broker, "m1", "stable"), Member(broker, "m1", "moving")
        await stable.join("t")
        await moving.join("t")
        await Member(broker, "m2", "moving").join("t")
        gone = Member(broker, "m1", "empty")
        await gone.join("t")
        await gone.leave()
        found = await values(reader)
        assert {protocol: found["group-count", (protocol,)] for protocol in ("classic", "consumer")} == {
            "classic": 1,
            "consumer": 3,
        }
        states = {tags[0]: value for (name, tags), value in found.items() if name == "consumer-group-count"}
        assert states == {"Empty": 1, "Assigning": 0, "Reconciling": 1, "Stable": 1, "Dead": 0}
        assert (found["NumGroups", ()], found["NumGroupsEmpty", ()], found["NumOffsets", ()]) == (1, 1, 1)


async def test_rebalances_are_counted_as_kafka_counts_them(tmp_path: Path) -> None:
    """A heartbeat that takes the group to its next epoch is one; a member that leaves is none."""
    async with group_broker(tmp_path, kpybroker_metrics_port="0") as broker:
        reader = GroupsReader(broker)
        assert (await values(reader))["consumer-group-rebalance-count", ()] == 0
        reader.tick()
        await create_topic(broker, "t")
        member = Member(broker, "m1")
        await member.join("t")
        await member.beat()
        await member.beat(subscribed_topic_names=["t", "u"])
        found = await values(reader)
        assert found["consumer-group-rebalance-count", ()] == 2
        assert 0 < found["consumer-group-rebalance-rate", ()] <= 2 / TICK_S
        await member.leave()
        broker.groups.partitions.on_resigned(broker.groups.partition_for("g"), 99)
        assert (await values(reader))["consumer-group-rebalance-count", ()] == 2
