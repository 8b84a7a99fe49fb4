"""Looking: each method says what stock requests say of the same thing, over all brokers of the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpybroker.control.inside import any_broker, ask, coordinating
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.api import ApiKey
from kpybroker.wire.codec import encode
from kpybroker.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kpybroker.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kpybroker.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest
from tests.support.brokers.hosted import hosted_brokers, refusal
from tests.support.requests.streams_group_requests import StreamsMember, topology

VERSION_0 = b"\0\0"


Topic = OffsetCommitRequest.OffsetCommitRequestTopic


async def loaded(hosted: Any, key: str, key_type: int = 0) -> None:
    """Return when the coordinator of a group (type 0) or transactional id (1) serves."""
    import trio

    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    with trio.fail_after(30):
        while (await ask(any_broker(hosted), ApiKey.FIND_COORDINATOR, request)).coordinators[0].error_code:
            await trio.lowlevel.checkpoint()


async def join(hosted: Any, group: str, topic: str) -> None:
    """One member, Stable, with partition 0 of `topic`, and offset 2 committed there."""
    await loaded(hosted, group)
    coordinator = coordinating(hosted, GROUP_METADATA_TOPIC_NAME, group)
    assert coordinator is not None
    metadata = VERSION_0 + encode(ConsumerProtocolSubscription(topics=[topic]), 0)
    joining = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        group_instance_id="instance",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    import trio

    with trio.fail_after(30):
        while (joined := await ask(coordinator, ApiKey.JOIN_GROUP, joining)).error_code:
            await trio.lowlevel.checkpoint()  # the coordinator loads its partition
    part = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[0])
    assignment = VERSION_0 + encode(ConsumerProtocolAssignment(assigned_partitions=[part]), 0)
    syncing = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="instance",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
    )
    assert (await ask(coordinator, ApiKey.SYNC_GROUP, syncing)).error_code == 0
    at = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=2, committed_metadata="here"
    )
    committing = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="instance",
        topics=[Topic(topic_id=coordinator.metadata.topic_id(topic), partitions=[at])],
    )
    response = await ask(coordinator, ApiKey.OFFSET_COMMIT, committing)
    assert response.topics[0].partitions[0].error_code == 0


async def test_topics_have_their_settings_and_the_offsets_of_each_partition(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (_, call):
        await call("create_topic", name="b", partitions=2, config={"retention.ms": 5})
        await call("create_topic", name="a")
        await call("produce", topic="b", records=[{"value": "x", "partition": 1}] * 3)
        await call("delete_records", topic="b", partition=1, before=1)
        first, second = await call("topics")
    assert (first["name"], second["name"], second["config"]) == ("a", "b", {"retention.ms": "5"})
    one = second["partitions"][1]
    assert (one["leader"], one["replicas"], one["isr"]) == (0, [0], [0])
    assert (one["start_offset"], one["high_watermark"], one["last_stable_offset"], one["end_offset"]) == (1, 3, 3, 3)
    assert second["partitions"][0]["bytes"] == 0 < one["bytes"]


async def test_a_cluster_is_looked_at_as_one(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path, 3, default_replication_factor="3") as (hosted, call):
        await call("create_topic", name="t", partitions=3)
        placed = await call("produce", topic="t", records=[{"value": str(number)} for number in range(6)])
        assert sorted({one["partition"] for one in placed}) == [0, 1, 2]
        topic = await call("topic", name="t")
        assert sorted(one["leader"] for one in topic["partitions"]) == [0, 1, 2]
        assert [one["value"] for one in await call("records", topic="t")] == ["0", "3", "1", "4", "2", "5"]
        await hosted.stop_broker(2)
        with_two = await call("topic", name="t")
        assert {one["leader"] for one in with_two["partitions"]} == {0, 1}
        assert [one["end_offset"] for one in with_two["partitions"]] == [2, 2, 2]


async def test_a_group_its_members_and_its_offsets(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (hosted, call):
        assert await call("groups") == []
        assert await call("group", group="g") is None
        assert await call("committed", group="g") == []
        await call("create_topic", name="t")
        await call("produce", topic="t", records=[{"value": "x"}] * 5)
        await join(hosted, "g", "t")
        found = await call("group", group="g")
        assert await call("groups") == [found]
        (member,) = found["members"]
        (offset,) = await call("committed", group="g")
    assert (found["type"], found["state"], found["protocol"]) == ("classic", "Stable", "range")
    assert (found["generation"], found["leader"], found["coordinator"]) == (1, member["member_id"], 0)
    assert (member["instance_id"], member["subscription"], member["assignment"]) == ("instance", ["t"], {"t": [0]})
    assert (offset["topic"], offset["partition"], offset["offset"]) == ("t", 0, 2)
    assert (offset["metadata"], offset["lag"]) == ("here", 3)


async def test_a_consumer_group_and_what_its_pattern_matches(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (hosted, call):
        await call("create_topic", name="t", partitions=2)
        await loaded(hosted, "g")
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            instance_id="instance",
            rebalance_timeout_ms=30_000,
            subscribed_topic_regex="t.*",
            topic_partitions=[],
        )
        coordinator = coordinating(hosted, GROUP_METADATA_TOPIC_NAME, "g")
        assert coordinator is not None
        import trio

        with trio.fail_after(30):
            while (joined := await ask(coordinator, ApiKey.CONSUMER_GROUP_HEARTBEAT, joining)).error_code:
                await trio.lowlevel.checkpoint()
            while not (joined.assignment and joined.assignment.topic_partitions):
                beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=joined.member_epoch)
                joined = await ask(coordinator, ApiKey.CONSUMER_GROUP_HEARTBEAT, beat)
                await trio.lowlevel.checkpoint()
        found = await call("group", group="g")
        assert await call("groups") == [found]
    (member,) = found["members"]
    assert (found["type"], found["state"], found["protocol"]) == ("consumer", "Stable", "uniform")
    assert (found["generation"], found["leader"], found["coordinator"]) == (joined.member_epoch, None, 0)
    assert (member["member_id"], member["instance_id"], member["client_id"]) == ("m", "instance", "control")
    assert (member["subscription"], member["assignment"]) == (["t"], {"t": [0, 1]})


async def test_a_streams_group_and_what_its_tasks_read(tmp_path: Path) -> None:
    delays = {"group_streams_assignment_interval_ms": "0", "group_streams_initial_rebalance_delay_ms": "0"}
    async with hosted_brokers(tmp_path, 1, **delays) as (hosted, call):
        await call("create_topic", name="t", partitions=2)
        await loaded(hosted, "g")
        coordinator = coordinating(hosted, GROUP_METADATA_TOPIC_NAME, "g")
        assert coordinator is not None
        member = StreamsMember(coordinator, "m")
        await member.join(topology("t"))
        await member.until(active={"0": [0, 1]})
        found = await call("group", group="g")
        assert await call("groups") == [found]
    (of,) = found["members"]
    assert (found["type"], found["state"], found["protocol"]) == ("streams", "Stable", "sticky")
    assert (found["generation"], found["leader"]) == (member.epoch, None)
    assert (of["member_id"], of["client_id"], of["subscription"]) == ("m", "m", ["t"])
    assert of["assignment"] == {"t": [0, 1]}


async def test_a_transactional_id(tmp_path: Path) -> None:
    keys = {f"transaction_state_log_{name}": "1" for name in ("replication_factor", "min_isr", "num_partitions")}
    async with hosted_brokers(tmp_path, 1, **keys) as (hosted, call):
        assert await call("transactions") == []
        assert "there is no transactional id `x`" in await refusal(call("transaction", transactional_id="x"))
        await loaded(hosted, "x", 1)
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=7_000)
        import trio

        with trio.fail_after(30):
            while (await ask(any_broker(hosted), ApiKey.INIT_PRODUCER_ID, request)).error_code:
                await trio.lowlevel.checkpoint()
        (found,) = await call("transactions")
        assert "see `transactions`" in await refusal(call("transaction", transactional_id="y"))
    assert (found["transactional_id"], found["state"], found["timeout_ms"]) == ("x", "Empty", 7_000)
    assert (found["started_ms"], found["partitions"]) == (None, [])


async def test_without_a_broker_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    async with hosted_brokers(tmp_path) as (hosted, call):
        await hosted.stop_broker(0)
        assert await refusal(call("topics")) == "all brokers are down; start one"
