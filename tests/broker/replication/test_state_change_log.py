"""The broker's lines in the state-change log are those of Kafka 3.9.1, as recorded from one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kpybroker.broker.replication import state_change_log
from kpybroker.broker.requests.log_fields import TRACE
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.running_broker import running_broker

LOGGER = "state.change.logger"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == LOGGER]


@pytest.fixture
def trace(caplog: pytest.LogCaptureFixture) -> None:
    logging.addLevelName(TRACE, "TRACE")
    caplog.set_level(TRACE, LOGGER)


@pytest.mark.usefixtures("trace")
async def test_a_leader_and_isr_request(caplog: pytest.LogCaptureFixture) -> None:
    state = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=2, controller_epoch=1, leader=1, isr=[1, 2, 3], replicas=[1, 2, 3], is_new=True
    )
    topic = LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name="orders-eu", partition_states=[state])
    request = LeaderAndIsrRequest(controller_id=1, controller_epoch=1, topic_states=[topic])
    count = await state_change_log.received_leader_and_isr(1, request, 3)
    state_change_log.finished_leader_and_isr(1, request, 3, count, 696)
    assert lines(caplog) == [
        "INFO [Broker id=1] Handling LeaderAndIsr request correlationId 3 from controller 1 for 1 partitions",
        "TRACE [Broker id=1] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='orders-eu', "
        "partitionIndex=2, controllerEpoch=1, leader=1, leaderEpoch=0, isr=[1, 2, 3], partitionEpoch=0, "
        "replicas=[1, 2, 3], addingReplicas=[], removingReplicas=[], isNew=true, leaderRecoveryState=0) correlation "
        "id 3 from controller 1 epoch 1",
        "INFO [Broker id=1] Finished LeaderAndIsr request in 696ms correlationId 3 from controller 1 for 1 partitions",
    ]


@pytest.mark.usefixtures("trace")
async def test_an_update_of_metadata(caplog: pytest.LogCaptureFixture) -> None:
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(
        partition_index=0, controller_epoch=1, leader=2, isr=[2, 3, 1], replicas=[2, 3, 1]
    )
    topic = UpdateMetadataRequest.UpdateMetadataTopicState(topic_name="orders-eu", partition_states=[state])
    request = UpdateMetadataRequest(controller_id=1, controller_epoch=1, topic_states=[topic])
    await state_change_log.updated_metadata(1, request, 4, 0)
    assert lines(caplog) == [
        "TRACE [Broker id=1] Cached leader info UpdateMetadataPartitionState(topicName='orders-eu', partitionIndex=0, "
        "controllerEpoch=1, leader=2, leaderEpoch=0, isr=[2, 3, 1], zkVersion=0, replicas=[2, 3, 1], "
        "offlineReplicas=[]) for partition orders-eu-0 in response to UpdateMetadata request sent by controller 1 "
        "epoch 1 with correlation id 4",
        "INFO [Broker id=1] Add 1 partitions and deleted 0 partitions from metadata cache in response to "
        "UpdateMetadata request sent by controller 1 epoch 1 with correlation id 4",
    ]


@pytest.mark.usefixtures("trace")
async def test_a_stop_of_replicas(caplog: pytest.LogCaptureFixture) -> None:
    state = StopReplicaRequest.StopReplicaPartitionState(partition_index=2, leader_epoch=5, delete_partition=True)
    topic = StopReplicaRequest.StopReplicaTopicState(topic_name="orders", partition_states=[state])
    request = StopReplicaRequest(controller_id=1, controller_epoch=7, topic_states=[topic])
    await state_change_log.received_stop_replica(2, request, 9)
    assert lines(caplog) == [
        "INFO [Broker id=2] Handling StopReplica request correlationId 9 from controller 1 for 1 partitions",
        "TRACE [Broker id=2] Received StopReplica request StopReplicaPartitionState(partitionIndex=2, leaderEpoch=5, "
        "deletePartition=true) correlation id 9 from controller 1 epoch 7 for partition orders-2",
    ]


async def test_a_new_topic_is_led(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    async with running_broker(tmp_path, topics=["orders"]):
        (line,) = [line for line in lines(caplog) if " Leader orders-0 " in line]
    before, after = line.split("Some(")
    assert before == "INFO [Broker id=0] Leader orders-0 with topic id "
    assert after.partition(")")[2] == (
        " starts at leader epoch 0 from offset 0 with partition epoch 0, high watermark 0, ISR [0], adding replicas [] "
        "and removing replicas [] . Previous leader None and previous leader epoch was -1."
    )
