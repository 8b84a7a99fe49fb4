"""The brokers of a scenario: each has a session, a controller and a queue, responds to requests, and sends some."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kpybroker.coordination.embedded import EmbeddedTree
from kpybroker.core.controller import events
from kpybroker.core.controller.context import ControllerContext
from kpybroker.core.controller.machine import Controller
from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.core.controller.text import parse_ids


@dataclass
class SimulatedBroker:
    """One broker: its session, controller and queue, and how it responds."""

    id: int
    tree: EmbeddedTree
    machine: Controller
    queue: deque[events.Event] = field(default_factory=deque)
    up: bool = False
    silent: bool = False
    cannot_delete: bool = False
    offline: set[TopicPartition] = field(default_factory=set)
    writes_until_crash: int | None = None
    writes_until_loss: int | None = None
    controller_epoch: int = 0
    replicas: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Hosted partitions: leader and leader epoch by LeaderAndIsr."""
    metadata: dict[TopicPartition, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)
    """Leader, leader epoch and ISR by UpdateMetadata."""

    def obey(self, message: Any) -> None:
        """Apply a request as a broker does, unless its controller or leader epoch is old."""
        if message.controller_epoch < self.controller_epoch:
            return
        self.controller_epoch = message.controller_epoch
        for topic in message.topic_states:
            for state in getattr(topic, "partition_states", ()):
                partition = TopicPartition(topic.topic_name, state.partition_index)
                if isinstance(message, UpdateMetadataRequest):
                    self.metadata[partition] = (state.leader, state.leader_epoch, tuple(state.isr))
                    if state.leader == LEADER_DURING_DELETE:
                        del self.metadata[partition]
                elif isinstance(message, LeaderAndIsrRequest):
                    if state.leader_epoch >= self.replicas.get(partition, (0, -1))[1]:
                        self.replicas[partition] = (state.leader, state.leader_epoch)
                elif state.delete_partition and not self.cannot_delete:
                    self.replicas.pop(partition, None)


def respond(receiver: SimulatedBroker, message: Any) -> Any:
    if isinstance(message, UpdateMetadataRequest):
        return UpdateMetadataResponse()
    if isinstance(message, LeaderAndIsrRequest):
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrResponse.LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                            partition_index=state.partition_index,
                            error_code=ErrorCode.KAFKA_STORAGE_ERROR
                            if (topic.topic_name, state.partition_index) in receiver.offline
                            else ErrorCode.NONE,
                        )
                        for state in topic.partition_states
                    ],
                )
                for topic in message.topic_states
            ]
        )
    assert isinstance(message, StopReplicaRequest)
    stops = [
        (t.topic_name, s.partition_index, s.delete_partition) for t in message.topic_states for s in t.partition_states
    ]
    stops += [(p.topic_name, p.partition_index, message.delete_partitions) for p in message.ungrouped_partitions]
    stops += [(t.name, i, message.delete_partitions) for t in message.topics for i in t.partition_indexes]
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaResponse.StopReplicaPartitionError(
                topic_name=name,
                partition_index=index,
                error_code=ErrorCode.KAFKA_STORAGE_ERROR if receiver.cannot_delete and delete else ErrorCode.NONE,
            )
            for name, index, delete in stops
        ]
    )


def is_uneventful(event: events.Event, context: ControllerContext) -> bool:
    """Of a response without errors, which changes nothing but a deletion, and what was offline: for a scenario to leave
    out.
    """
    if isinstance(event, events.UpdateMetadataResponseReceived):
        return True
    if isinstance(event, events.LeaderAndIsrResponseReceived):
        errors = any(e.error_code for topic in event.response.topics for e in topic.partition_errors)
        return not errors and not context.replicas_on_offline_dirs.get(event.broker_id)
    return False


def alter_partition(
    context: ControllerContext, broker_id: int, key: TopicPartition, version: int, given: Mapping[str, str]
) -> AlterPartitionRequest:
    """A leader's AlterPartition; what is not `given` is as the controller has it."""
    info = context.partition_leadership_info.get(key)
    current = info.leader_and_isr if info else None
    isr = list(parse_ids(given["isr"]))
    data = AlterPartitionRequest.PartitionData(
        partition_index=key.partition,
        leader_epoch=int(given.get("epoch", current.leader_epoch if current else 0)),
        new_isr=isr if version < 3 else [],
        new_isr_with_epochs=[AlterPartitionRequest.BrokerState(broker_id=i) for i in isr] if version >= 3 else [],
        leader_recovery_state=int(given.get("recovery", 0)),
        partition_epoch=int(given.get("partition_epoch", current.partition_epoch if current else 0)),
    )
    topic = AlterPartitionRequest.TopicData(partitions=[data])
    if version >= 2:
        topic.topic_id = context.topic_ids.get(key.topic, b"?" * 16)
    else:
        topic.topic_name = key.topic
    epoch = int(given.get("broker_epoch", context.live_broker_epochs.get(broker_id, -1)))
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, topics=[topic])
