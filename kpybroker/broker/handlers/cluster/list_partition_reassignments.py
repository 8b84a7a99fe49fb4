"""ListPartitionReassignments 0: the reassignments in progress, of some partitions or of all (KIP-455).

Served by the controller alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import ListPartitionReassignments
from kpybroker.core.controller.model import ReplicaAssignment
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
Partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment

LEDGER = Ledger(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, {0: "replicas, adding and removing, of each partition"})


async def handle(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """The reassignments in progress; raises NOT_CONTROLLER where this broker is not the controller."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    wanted = None
    if request.topics is not None:
        asked = (TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes)
        budget = YieldBudget()
        partitions = await listed(asked, budget)
        await budget.spend(ELEMENT * len(partitions))
        wanted = set(partitions)
        await budget.spend(ELEMENT * len(partitions))
    found: dict[TopicPartition, ReplicaAssignment] = await broker.controller.ask(ListPartitionReassignments(wanted))
    topics: dict[str, Topic] = {}
    for (name, index), assignment in found.items():
        topic = topics.setdefault(name, Topic(name=name))
        topic.partitions.append(
            Partition(
                partition_index=index,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
            )
        )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()))


def error_response(
    request: ListPartitionReassignmentsRequest, context: RequestContext, error: KafkaError
) -> ListPartitionReassignmentsResponse:
    """The error with its message at the top of the response."""
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message or error.code.message)
