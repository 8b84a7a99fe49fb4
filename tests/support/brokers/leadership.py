"""The controller's part, played by a test: who leads partition 0 of topic `t`, which brokers live, and ISR changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.peers.controller_channel import ControllerChannel
from kpybroker.broker.replication.partition import Partition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionResponse
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest
from tests.support.brokers.running_broker import ask

LISR = LeaderAndIsrRequest
UPDATE = UpdateMetadataRequest
TOPIC_ID = b"t" * 16
CONTROLLER_EPOCH = 9


async def order(broker: Broker, leader: int, epoch: int, isr: list[int]) -> None:
    """One LeaderAndIsr; `epoch` is the leader's and the partition's, and 0 makes the partition. Replicas: 0 and 1."""
    state = LISR.LeaderAndIsrPartitionState(
        partition_index=0,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        isr=isr,
        replicas=[0, 1],
        is_new=epoch == 0,
    )
    topic = LISR.LeaderAndIsrTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    request = LISR(controller_epoch=CONTROLLER_EPOCH, broker_epoch=broker.broker_epoch, topic_states=[topic])
    assert (await ask(broker, request, 7)).error_code == ErrorCode.NONE


async def lead(broker: Broker, isr: list[int]) -> Partition:
    """Make broker 0 lead a new partition with replicas 0, 1 and 2."""
    state = LISR.LeaderAndIsrPartitionState(
        partition_index=0, leader=0, leader_epoch=0, isr=isr, replicas=[0, 1, 2], is_new=True
    )
    topic = LISR.LeaderAndIsrTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
    request = LISR(controller_epoch=CONTROLLER_EPOCH, broker_epoch=broker.broker_epoch, topic_states=[topic])
    refuse = await ask(broker, request, 7)
    assert refuse.error_code == ErrorCode.NONE
    (partition,) = [partition for partition in broker.replicas if partition.topic == "t"]
    return partition


class RefusingController:
    """Refuses every AlterPartition with INELIGIBLE_REPLICA, once `responds` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked = trio.Event()
        self.responds = trio.Event()
        original = ControllerChannel.ask

        async def refuse(channel: ControllerChannel, api_key: ApiKey, message: Any, version: int) -> Any:
            if api_key != ApiKey.ALTER_PARTITION:
                return await original(channel, api_key, message, version)
            self.is_asked.set()
            await self.responds.wait()
            refused = AlterPartitionResponse.PartitionData(partition_index=0, error_code=ErrorCode.INELIGIBLE_REPLICA)
            topic = AlterPartitionResponse.TopicData(topic_id=TOPIC_ID, topic_name="t", partitions=[refused])
            return AlterPartitionResponse(topics=[topic])

        monkeypatch.setattr(ControllerChannel, "ask", refuse)


async def update_metadata(broker: Broker, alive: Sequence[int]) -> None:
    """One UpdateMetadata: these brokers live."""
    brokers = [
        UPDATE.UpdateMetadataBroker(
            id=node,
            endpoints=[UPDATE.UpdateMetadataEndpoint(port=9092 + node, host="127.0.0.1", listener="PLAINTEXT")],
        )
        for node in alive
    ]
    request = UPDATE(controller_epoch=CONTROLLER_EPOCH, broker_epoch=broker.broker_epoch, live_brokers=brokers)
    refuse = await ask(broker, request, 8)
    assert refuse.error_code == ErrorCode.NONE
