"""LeaderAndIsr and StopReplica as lists of orders, whichever version they have, what UpdateMetadata says of topics that
are being deleted, and LeaderAndIsr's response.

Not here: carrying the orders out (`replicas`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpybroker.core.controller.model import LEADER_DURING_DELETE
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kpybroker.wire.messages.stop_replica import StopReplicaRequest
from kpybroker.wire.messages.update_metadata import UpdateMetadataRequest

PartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState
PartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError
TopicError = LeaderAndIsrResponse.LeaderAndIsrTopicError

NO_EPOCH = -1
"""The leader epoch in a StopReplica before version 3, which has none."""
TOPIC_IDS_SINCE = 5


class TopicOrder(NamedTuple):
    """New states of some partitions of a topic. `topic_id` is ZERO_UUID before version 5, and before KIP-516."""

    name: str
    topic_id: bytes
    states: list[PartitionState]


class StopOrder(NamedTuple):
    """A replica to stop, and whether to delete its log. An epoch below 0 is not checked (KIP-570)."""

    topic: str
    partition: int
    leader_epoch: int
    delete: bool


def topic_orders(request: LeaderAndIsrRequest) -> Iterator[TopicOrder]:
    """Partition by partition before version 2 (KIP-380), topic by topic since."""
    for state in request.ungrouped_partition_states:
        yield TopicOrder(state.topic_name, ZERO_UUID, [state])
    for topic in request.topic_states:
        yield TopicOrder(topic.topic_name, topic.topic_id, topic.partition_states)


def add_errors(response: LeaderAndIsrResponse, order: TopicOrder, errors: list[PartitionError], version: int) -> None:
    """By topic id since version 5, in one list before."""
    if version >= TOPIC_IDS_SINCE:
        response.topics.append(TopicError(topic_id=order.topic_id, partition_errors=errors))
    else:
        response.partition_errors += errors


def stop_orders(request: StopReplicaRequest) -> Iterator[StopOrder]:
    """One delete flag for all replicas before version 3, one each since."""
    for old in request.ungrouped_partitions:
        yield StopOrder(old.topic_name, old.partition_index, NO_EPOCH, request.delete_partitions)
    for by_name in request.topics:
        for index in by_name.partition_indexes:
            yield StopOrder(by_name.name, index, NO_EPOCH, request.delete_partitions)
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield StopOrder(topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)


def deleted_elsewhere(request: UpdateMetadataRequest, broker_id: int) -> Iterator[tuple[bytes, StopOrder]]:
    """Partitions of topics that are being deleted, with the topic's id, of which this broker should have no replica:
    it gets no StopReplica for them. None before version 7, which has no topic ids.
    """
    for topic in request.topic_states:
        for state in topic.partition_states if topic.topic_id != ZERO_UUID else ():
            if state.leader == LEADER_DURING_DELETE and broker_id not in state.replicas:
                yield topic.topic_id, StopOrder(topic.topic_name, state.partition_index, NO_EPOCH, delete=True)
