"""The controller's requests: only from who may act for the cluster, only for this life of the broker, in all
versions.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kpybroker.broker.handlers.between_brokers import (
    allocate_producer_ids,
    leader_and_isr,
    stop_replica,
    update_metadata,
)
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.control_broker import Denying, call, running_broker

Lisr = LeaderAndIsrRequest
Stop = StopReplicaRequest


def leader_and_isr_request(version: int, **header: Any) -> LeaderAndIsrRequest:
    state = Lisr.LeaderAndIsrPartitionState(topic_name="t", partition_index=0, leader=0, is_new=True)
    request = Lisr(controller_epoch=9, **header)
    if version < 2:
        request.ungrouped_partition_states = [state]
    else:
        request.topic_states = [
            Lisr.LeaderAndIsrTopicState(topic_name="t", topic_id=b"t" * 16, partition_states=[state])
        ]
    return request


def stop_replica_request(version: int, **header: Any) -> StopReplicaRequest:
    request = Stop(controller_epoch=9, **header)
    if version == 0:
        request.ungrouped_partitions = [Stop.StopReplicaPartitionV0(topic_name="t", partition_index=0)]
    elif version < 3:
        request.topics = [Stop.StopReplicaTopicV1(name="t", partition_indexes=[0])]
    else:
        state = Stop.StopReplicaPartitionState(partition_index=0)
        request.topic_states = [Stop.StopReplicaTopicState(topic_name="t", partition_states=[state])]
    return request


def update_metadata_request(version: int, **header: Any) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_epoch=9, **header)


CASES = [
    *[(leader_and_isr, leader_and_isr_request, version) for version in range(8)],
    *[(stop_replica, stop_replica_request, version) for version in range(5)],
    *[(update_metadata, update_metadata_request, version) for version in range(9)],
]
BROKER_EPOCH_SINCE = {leader_and_isr: 2, stop_replica: 1, update_metadata: 5}


@pytest.mark.parametrize(("handler", "make", "version"), CASES)
async def test_the_controllers_word_is_taken(handler: Any, make: Any, version: int) -> None:
    async with running_broker() as broker:
        response = await call(broker, handler, make(version), version)
        assert response.error_code == ErrorCode.NONE
        if handler is leader_and_isr:
            assert broker.configs.prefetched == {"t": version >= 1}
            assert broker.replicas.requests


@pytest.mark.parametrize(("handler", "make", "version"), CASES)
async def test_a_request_for_an_earlier_life_changes_nothing(handler: Any, make: Any, version: int) -> None:
    if version < BROKER_EPOCH_SINCE[handler]:
        return
    async with running_broker() as broker:
        done = len(broker.replicas.requests)
        snapshot = broker.metadata.snapshot
        response = await call(broker, handler, make(version, broker_epoch=broker.broker_epoch - 1), version)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert len(broker.replicas.requests) == done
        assert broker.metadata.snapshot is snapshot
        response = await call(broker, handler, make(version, broker_epoch=broker.broker_epoch + 1), version)
        assert response.error_code == ErrorCode.NONE


@pytest.mark.parametrize(("handler", "make", "version"), CASES)
async def test_not_without_cluster_action(handler: Any, make: Any, version: int) -> None:
    denying = Denying([(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, None)])
    async with running_broker() as broker:
        response = await call(broker, handler, make(version), version, authorizer=denying)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_former_controller_does_not_change_the_metadata() -> None:
    async with running_broker() as broker:
        snapshot = broker.metadata.snapshot
        response = await call(broker, update_metadata, UpdateMetadataRequest(controller_epoch=0), 8)
        assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert broker.metadata.snapshot is snapshot


async def test_orders_are_carried_out_one_at_a_time_and_seen_whole() -> None:
    """A long one gives the loop back; what arrives until its end waits, and readers see what was before."""
    state = UpdateMetadataRequest.UpdateMetadataPartitionState
    many = [state(partition_index=index, leader=0) for index in range(5000)]

    def update(topic: str, states: list[Any]) -> UpdateMetadataRequest:
        topic_state = UpdateMetadataRequest.UpdateMetadataTopicState(topic_name=topic, partition_states=states)
        return UpdateMetadataRequest(controller_epoch=9, topic_states=[topic_state])

    async with running_broker() as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, broker, update_metadata, update("large", many), 8)
            nursery.start_soon(call, broker, update_metadata, update("small", many[:1]), 8)
            while "small" not in broker.metadata.snapshot.topics:
                assert len(broker.metadata.snapshot.topics.get("large", many)) == len(many)
                await trio.lowlevel.checkpoint()
        assert set(broker.metadata.snapshot.topics) == {"large", "small"}


async def test_producer_ids_come_in_blocks() -> None:
    async with running_broker() as broker:
        request = AllocateProducerIdsRequest(broker_id=0, broker_epoch=broker.broker_epoch)
        first = await call(broker, allocate_producer_ids, request, 0)
        second = await call(broker, allocate_producer_ids, request, 0)
        stale = AllocateProducerIdsRequest(broker_id=0, broker_epoch=broker.broker_epoch - 1)
        refused = await call(broker, allocate_producer_ids, stale, 0)
    assert (first.producer_id_start, first.producer_id_len) == (0, 1000)
    assert (second.producer_id_start, second.producer_id_len) == (1000, 1000)
    assert refused.error_code == ErrorCode.STALE_BROKER_EPOCH
