"""Share coordinators on two brokers: each asks the other over the network, and takes over when the other stops."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from kpybroker.broker.coordinators.share_messages import DELETE, INITIALIZE, READ, SUMMARY, WRITE
from kpybroker.broker.handlers import routes
from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.core.share_coordinator.values import (
    DeleteState,
    InitializeState,
    ReadState,
    SharePartitionKey,
    StateBatch,
    WriteState,
)
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.running_broker import create_topic
from tests.support.brokers.running_cluster import RunningCluster, running_cluster

PARTITIONS = 16
"""So many that each broker keeps the state of some, whatever the topic's id is."""
KEYS = {
    "share_coordinator_state_topic_num_partitions": "4",
    "share_coordinator_state_topic_replication_factor": "2",
    "share_coordinator_state_topic_min_isr": "1",
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch of this test: nothing serves them before share groups are complete."""
    for api in (INITIALIZE, READ, WRITE, DELETE, SUMMARY):
        ledger = routes.load(api.key).LEDGER
        monkeypatch.setitem(SERVED, api.key, (ledger.min_version, ledger.max_version))


def kept_by(cluster: RunningCluster, broker_id: int) -> set[SharePartitionKey]:
    machines = cluster.brokers[broker_id].coordinators.share_states.partitions.machines
    return {key for machine in machines for key in machine.states}


async def test_states_of_other_brokers_are_asked_for_and_taken_over(tmp_path: Path, served: None) -> None:
    async with running_cluster(tmp_path, 1, 2, **KEYS) as cluster:
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
        written = await two.write("g", [WriteState(topic_id, index, 1, 0, 30, 2, (batch,)) for index in indexes])
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
