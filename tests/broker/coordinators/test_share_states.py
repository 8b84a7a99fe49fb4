"""Share coordinators of whole brokers: the persister that asks them, the topic, what is left after a restart, and what
another broker takes over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadState,
    SharePartitionKey,
    StateBatch,
    WriteState,
)
from kpybroker.core.topic_names import SHARE_GROUP_STATE_TOPIC_NAME
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest
from tests.support.brokers.running_broker import ask, create_topic, running_broker
from tests.support.brokers.running_cluster import RunningCluster, running_cluster

STATE_KEYS = {
    "share_coordinator_state_topic_num_partitions": "2",
    "share_coordinator_state_topic_replication_factor": "1",
    "share_coordinator_state_topic_min_isr": "1",
    "share_coordinator_snapshot_update_records_per_snapshot": "2",
    "share_coordinator_cold_partition_snapshot_interval_ms": "1",
}

PARTITIONS = 16
"""So many that each broker keeps the state of some, whatever the topic's id is."""
CLUSTER_KEYS = {
    "share_coordinator_state_topic_num_partitions": "4",
    "share_coordinator_state_topic_replication_factor": "2",
    "share_coordinator_state_topic_min_isr": "1",
}


@asynccontextmanager
async def share_broker(directory: Path, **options: Any) -> AsyncIterator[Broker]:
    async with running_broker(directory, **STATE_KEYS | options) as broker:
        yield broker


def states(broker: Broker) -> set[SharePartitionKey]:
    """What is in the memory of this broker's coordinators."""
    return {key for machine in broker.coordinators.share_states.partitions.machines for key in machine.states}


def errors(results: list[Any]) -> list[ErrorCode]:
    return [result.error for result in results]


async def test_the_first_request_creates_the_topic_and_states_survive_a_restart(tmp_path: Path) -> None:
    batches = (StateBatch(10, 14, 2, 1), StateBatch(15, 19, 0, 2))
    async with share_broker(tmp_path, keeps=True) as broker:
        topic_id = await create_topic(broker, "orders")
        persister = broker.coordinators.share_persister
        wanted = [
            InitializeState(topic_id, 0, 1, 10),
            InitializeState(topic_id, 9, 1),
            InitializeState(topic_id, -1, 1),
        ]
        direct = await run_to_end(broker.coordinators.share_states.ask("g", wanted))
        assert errors(direct) == [ErrorCode.NOT_COORDINATOR] * 3
        assert await persister.initialize("g", wanted[:1]) == [type(direct[0])(topic_id, 0)]
        assert broker.metadata.partition_count(SHARE_GROUP_STATE_TOPIC_NAME) == 2
        log = broker.logs.get(SHARE_GROUP_STATE_TOPIC_NAME, 0)
        assert log is not None
        assert (set(log.config.cleanup_policy), log.config.retention_ms) == ({"delete"}, -1)
        direct = await run_to_end(broker.coordinators.share_states.ask("g", wanted[1:]))
        assert errors(direct) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST]
        (read,) = await persister.read("g", [ReadState(topic_id, 0, 7)])
        assert (read.error, read.state_epoch, read.start_offset) == (ErrorCode.NONE, 1, 10)
        write = WriteState(topic_id, 0, 1, 7, delivery_complete_count=5, state_batches=batches)
        assert errors(await run_to_end(persister.write("g", [write]))) == [ErrorCode.NONE]
    async with share_broker(tmp_path, keeps=True) as broker:
        persister = broker.coordinators.share_persister
        results = await persister.read("g", [ReadState(topic_id, 0, 7), ReadState(topic_id, 0, 6)])
        assert errors(results) == [ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH]
        assert results[0].state_batches == batches
        (summary,) = await persister.read_summary("g", [ReadState(topic_id, 0)])
        assert (summary.leader_epoch, summary.start_offset, summary.delivery_complete_count) == (7, 10, 5)
        assert errors(await persister.delete("g", [DeleteState(topic_id, 0)])) == [ErrorCode.NONE]
        assert not states(broker)


async def test_what_later_snapshots_make_redundant_is_deleted(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as broker:
        topic_id = await create_topic(broker, "orders")
        persister, coordinators = broker.coordinators.share_persister, broker.coordinators.share_states
        await persister.initialize("g", [InitializeState(topic_id, 0, 1, 0)])
        for offset in range(5):
            write = WriteState(topic_id, 0, 1, 0, offset + 1, 0, (StateBatch(offset + 1, offset + 1, 2, 1),))
            assert errors(await run_to_end(persister.write("g", [write]))) == [ErrorCode.NONE]
        (shard,) = (shard for shard in coordinators.partitions.shards.values() if shard.machine.states)
        log = shard.partition.online_log()
        await coordinators.prune()
        assert (log.log_start_offset, log.log_end_offset) == (3, 6)  # a snapshot, two updates, a snapshot, two updates
        with trio.fail_after(60):
            while log.log_start_offset < 6:  # from the first millisecond on, and once
                await coordinators.snapshot_cold()
                await coordinators.prune()
        assert (log.log_start_offset, log.log_end_offset) == (6, 7)


async def test_the_states_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    async with share_broker(tmp_path) as broker:
        gone, kept = await create_topic(broker, "gone"), await create_topic(broker, "kept")
        persister = broker.coordinators.share_persister
        for group in ("g", "h"):
            await persister.initialize(group, [InitializeState(gone, 0, 1, 0), InitializeState(kept, 0, 1, 0)])
        assert len(states(broker)) == 4
        await ask(broker, DeleteTopicsRequest(topic_names=["gone"], timeout_ms=10_000), 3)
        assert states(broker) == {SharePartitionKey("g", kept, 0), SharePartitionKey("h", kept, 0)}


# --- two brokers


def kept_by(cluster: RunningCluster, broker_id: int) -> set[SharePartitionKey]:
    machines = cluster.brokers[broker_id].coordinators.share_states.partitions.machines
    return {key for machine in machines for key in machine.states}


async def test_states_of_other_brokers_are_asked_for_and_taken_over(tmp_path: Path) -> None:
    async with running_cluster(tmp_path, 1, 2, **CLUSTER_KEYS) as cluster:
        topic_id = await create_topic(cluster.controller, "orders", PARTITIONS)
        with trio.fail_after(60):
            for broker in cluster.brokers.values():
                await broker.metadata.wait_until(lambda snapshot: topic_id in snapshot.topic_names, 60)
        one, two = (cluster.brokers[broker_id].coordinators.share_persister for broker_id in (1, 2))
        indexes = range(PARTITIONS)
        begun = await one.initialize("g", [InitializeState(topic_id, index, 1, index) for index in indexes])
        assert [(result.partition, result.error) for result in begun] == [(index, ErrorCode.NONE) for index in indexes]
        everything = {SharePartitionKey("g", topic_id, index) for index in indexes}
        assert kept_by(cluster, 1) | kept_by(cluster, 2) == everything
        assert kept_by(cluster, 1), "else nothing was asked for over the network"
        assert kept_by(cluster, 2)
        batch = StateBatch(30, 31, 2, 1)
        states = [WriteState(topic_id, index, 1, 0, 30, 2, (batch,)) for index in indexes]
        written = await run_to_end(two.write("g", states))
        assert {result.error for result in written} == {ErrorCode.NONE}
        read = await two.read("g", [ReadState(topic_id, index, 5) for index in indexes])
        assert [(result.start_offset, result.state_batches) for result in read] == [(30, (batch,))] * PARTITIONS
        await cluster.stop(1)
        summaries = await two.read_summary("g", [ReadState(topic_id, index) for index in indexes])
        rows = [(one.error, one.leader_epoch, one.start_offset, one.delivery_complete_count) for one in summaries]
        assert rows == [(ErrorCode.NONE, 5, 30, 2)] * PARTITIONS
        assert kept_by(cluster, 2) == everything
        gone = await two.delete("g", [DeleteState(topic_id, index) for index in indexes])
        assert {result.error for result in gone} == {ErrorCode.NONE}
        assert not kept_by(cluster, 2)
