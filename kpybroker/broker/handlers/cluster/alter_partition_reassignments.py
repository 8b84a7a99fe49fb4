"""AlterPartitionReassignments 0-1: move replicas, or (replicas null) cancel a move (KIP-455).

The response says whether each move has begun; it goes on in the background. Served by the controller alone.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import ApiError, ApiPartitionReassignment
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
Partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse

NO_TEXT_FROM = 1
"""Before this version, as in Kafka 3.9, the text of no error is an empty one; so it is where nothing was asked for."""
PARTITIONS_AT_ONCE = 10_000
"""In one event of the controller, which holds the loop while it looks at them."""

LEDGER = Ledger(
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    0,
    1,
    {0: "target replicas of each partition, null to cancel", 1: "the number of replicas may not change (KIP-860)"},
)


async def handle(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Begin or cancel the reassignments; raises NOT_CONTROLLER where this broker is not the controller."""
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    budget = YieldBudget()
    asked = (
        (TopicPartition(topic.name, partition.partition_index), partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    )
    pairs = await listed(asked, budget)
    await budget.spend(ELEMENT * len(pairs))
    wanted = dict(pairs)
    await budget.spend(ELEMENT * len(pairs))
    partitions = list(wanted)
    results: dict[str, dict[int, ApiError]] = {}
    for start in range(0, len(partitions), PARTITIONS_AT_ONCE) or (0,):
        part = {one: wanted[one] for one in partitions[start : start + PARTITIONS_AT_ONCE]}
        outcomes: dict[TopicPartition, ApiError] = await broker.controller.ask(
            ApiPartitionReassignment(part, request.allow_replication_factor_change)
        )
        for (name, index), error in outcomes.items():
            results.setdefault(name, {})[index] = error
            await budget.spend()
    topics = []
    for name, errors in sorted(results.items()):
        await budget.spend(ELEMENT * len(errors))
        in_order = sorted(errors.items())
        await budget.spend(ELEMENT * len(errors))
        topics.append(Topic(name=name, partitions=await listed(starmap(_partition, in_order), budget)))
    if not request.topics:
        return AlterPartitionReassignmentsResponse()
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None if context.api_version >= NO_TEXT_FROM else "",
        responses=topics,
    )


def _partition(index: int, error: ApiError) -> Partition:
    return Partition(partition_index=index, error_code=error.code, error_message=error.text)


def error_response(
    request: AlterPartitionReassignmentsRequest, context: RequestContext, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    """The error at the top of the response and at each partition."""
    message = error.message or error.code.message
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=message,
        responses=[
            Topic(
                name=topic.name,
                partitions=[
                    Partition(partition_index=p.partition_index, error_code=error.code, error_message=message)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
