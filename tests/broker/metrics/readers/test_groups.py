"""Groups of both protocols as the metrics count them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.metrics.readers.groups import GroupsReader
from kpybroker.broker.metrics.readers.recent import WINDOW_S
from kpybroker.metrics.rates import TICK_S
from kpybroker.metrics.reading import Tags
from kpybroker.metrics.tables import coordinators as c
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.broker.handlers.groups.group_scenarios import commit_request, join_request, sync_request
from tests.metrics import absent
from tests.metrics.kafka_4_groups import KAFKA_4_3_1, METERS
from tests.support.brokers.hosted import until
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.requests.consumer_group_requests import Member, group_broker, loaded
from tests.support.requests.group_requests import commit
from tests.support.requests.streams_group_requests import StreamsMember, topology


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
    async with group_broker(
        tmp_path, kpybroker_metrics_port="0", group_streams_initial_rebalance_delay_ms="0"
    ) as broker:
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
        for group_id, epochs in {"queue": (0,), "left": (0, -1)}.items():
            await loaded(broker, group_id)
            for epoch in epochs:
                names = ["t"] if epoch == 0 else None
                beat = ShareGroupHeartbeatRequest(
                    group_id=group_id, member_id="m", member_epoch=epoch, subscribed_topic_names=names
                )
                assert (await ask(broker, beat, 1)).error_code == 0
        for group_id, topic in {"words": "t", "waiting": "missing"}.items():
            await loaded(broker, group_id)
            await StreamsMember(broker, "m", group_id).join(topology(topic))
        found = await values(reader)
        kinds = ("classic", "consumer", "share", "streams")
        protocols = {protocol: found["group-count", (protocol,)] for protocol in kinds}
        assert protocols == {"classic": 1, "consumer": 3, "share": 2, "streams": 2}
        streams = {tags[0]: value for (name, tags), value in found.items() if name == "streams-group-count"}
        assert streams == {"Empty": 0, "NotReady": 1, "Assigning": 0, "Reconciling": 0, "Stable": 1, "Dead": 0}
        assert found["streams-group-rebalance-count", ()] == 2
        shares = {tags[0]: value for (name, tags), value in found.items() if name == "share-group-count"}
        assert shares == {"Empty": 1, "Stable": 1, "Dead": 0}
        assert found["share-group-rebalance-count", ()] == 2
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


def test_every_attribute_of_kafka_4_is_here_or_has_a_reason() -> None:
    here = {family.attribute for family in c.OF_PROTOCOLS}
    patterns = [one for pattern in absent.GROUPS for one in pattern.split("|")]
    absent_here = {name for name in KAFKA_4_3_1 if any(fnmatchcase(name, pattern) for pattern in patterns)}
    assert here <= KAFKA_4_3_1
    assert not here & absent_here
    assert here | absent_here == KAFKA_4_3_1
    assert all(any(fnmatchcase(name, pattern) for name in absent_here) for pattern in patterns)


async def test_a_broker_in_the_place_of_kafka_3_9_has_what_that_has(tmp_path: Path) -> None:
    async with running_broker(tmp_path, features={}, kpybroker_metrics_port="0") as broker:
        await create_topic(broker, "t", 2)
        await loaded(broker, "simple")
        reader = GroupsReader(broker)
        request = commit_request({"t": {0: 5, 1: 6}})
        request.group_id = "simple"
        await ask(broker, request, 8)
        found = await values(reader)
        names = {name for name, _ in found if "-" in name}
        meters = METERS[:4]
        assert names == {
            *(f"{name}-{value}" for name in meters for value in ("rate", "count")),
            *("partition-load-time-max", "partition-load-time-avg"),
        }
        assert found["offset-commit-count", ()] == 2


async def test_offsets_and_rebalances_of_classic_groups_are_counted(tmp_path: Path) -> None:
    keys = {"offsets_retention_minutes": "1", "group_initial_rebalance_delay_ms": "0"}
    async with group_broker(tmp_path, kpybroker_metrics_port="0", **keys) as broker:
        reader = GroupsReader(broker)
        await create_topic(broker, "t", 3)
        reader.tick()
        for group_id, offsets in (("one", {0: 5, 1: 6}), ("two", {2: 7})):
            request = commit_request({"t": dict(offsets)})
            request.group_id = group_id
            await ask(broker, request, 9)
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(
            name="t",
            partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in (1, 2)],
        )
        await ask(broker, OffsetDeleteRequest(group_id="one", topics=[topic]), 0)
        shard = broker.groups.shard_for("two")
        later = shard.now()._replace(wall_ms=shard.now().wall_ms + 61_000)
        shard.run(shard.machine.cleanup("two", later))
        joined = await ask(broker, join_request("classic"), 3)
        await ask(broker, sync_request(joined.generation_id, joined.member_id, "classic"), 3)
        found = await values(reader)
        counts = {name: found[f"{name}-count", ()] for name in METERS[:4]}
        assert counts == {
            "offset-commit": 3,
            "offset-expiration": 1,
            "offset-deletion": 1,
            "group-completed-rebalance": 1,
        }
        assert 0 < found["offset-commit-rate", ()] <= 3 / TICK_S


async def test_partitions_are_counted_by_state_and_loads_are_timed(tmp_path: Path) -> None:
    async with group_broker(tmp_path, kpybroker_metrics_port="0", offsets_topic_num_partitions="2") as broker:
        reader = GroupsReader(broker)
        partitions = broker.groups.partitions

        async def states() -> list[int]:
            found = await values(reader)
            return [found["num-partitions", (state,)] for state in ("loading", "active", "failed")]

        await until(lambda: len(partitions.shards) == 2)
        assert await states() == [0, 2, 0]
        found = await values(reader)
        assert 0 < found["partition-load-time-avg", ()] <= found["partition-load-time-max", ()]
        partitions.loads.clear()
        partitions.loads.append((broker.clock.monotonic() - WINDOW_S - 1, 7.0))
        assert (await values(reader))["partition-load-time-max", ()] == 0
        await broker.groups.ask(commit(next(f"g{n}" for n in count() if partitions.partition_for(f"g{n}") == 0)))
        partitions.on_resigned(0, 99)
        assert await states() == [0, 1, 0]
        partitions.on_elected(0, 100)
        assert await states() == [1, 1, 0]
        await until(lambda: len(partitions.shards) == 2)
        assert await states() == [0, 2, 0]


async def test_a_partition_that_cannot_be_loaded_is_counted_until_it_can(tmp_path: Path) -> None:
    async with group_broker(
        tmp_path, kpybroker_metrics_port="0", offsets_topic_num_partitions="1", keeps=True
    ) as broker:
        reader = GroupsReader(broker)
        partitions = broker.groups.partitions
        await create_topic(broker, "t")
        await Member(broker, "m").join("t")
        partition = broker.replicas.partition("__consumer_offsets", 0)
        assert partition is not None
        segment = trio.Path(partition.online_log().directory, "00000000000000000000.log")
        sound = await segment.read_bytes()

        async def loaded_again(epoch: int, content: bytes) -> tuple[int, int]:
            async with await segment.open("r+b") as file:
                await file.write(content)
            partitions.on_resigned(0, epoch)
            partitions.on_elected(0, epoch)
            await until(lambda: not partitions.is_loading)
            found = await values(reader)
            return found["num-partitions", ("active",)], found["num-partitions", ("failed",)]

        assert await loaded_again(98, sound[:-1] + bytes([sound[-1] ^ 1])) == (0, 1)
        assert await loaded_again(99, sound) == (1, 0)
