"""OffsetForLeaderEpoch 0-4: where an epoch ends in this leader's log.

Followers and consumers (KIP-101, KIP-279, KIP-320) find the point up to which their log agrees with the leader's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.replication.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    0,
    4,
    {
        0: "the end offset",
        1: "the epoch found",
        2: "leader epoch fencing, throttle time",
        3: "replica id",
        4: "flexible",
    },
)

EpochEndOffset = OffsetForLeaderEpochResponse.EpochEndOffset
TopicResult = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult


async def handle(
    broker: Broker, request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """The end offset of the requested epoch in each partition."""
    may_all = context.authorized(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, log_denied=False)
    response, budget = OffsetForLeaderEpochResponse(), YieldBudget()
    for topic in request.topics:
        await budget.spend()
        readable = may_all or context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic)
        result = TopicResult(topic=topic.topic)
        for wanted in topic.partitions:
            await budget.spend()
            end = EpochEndOffset(partition=wanted.partition)
            try:
                if not readable:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = broker.replicas.hosted(topic.topic, wanted.partition)
                log = partition.readable_log(wanted.current_leader_epoch, only_leader=True)
                end.leader_epoch, end.end_offset = log.end_offset_for_epoch(wanted.leader_epoch)
            except KafkaError as error:
                end.error_code = error.code
                end.leader_epoch, end.end_offset = UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
            result.partitions.append(end)
        response.topics.append(result)
    return response


def error_response(
    request: OffsetForLeaderEpochRequest, context: RequestContext, error: KafkaError
) -> OffsetForLeaderEpochResponse:
    """The error at each partition, with an undefined epoch and end offset."""
    return OffsetForLeaderEpochResponse(
        topics=[
            TopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(
                        partition=wanted.partition,
                        error_code=error.code,
                        leader_epoch=UNDEFINED_EPOCH,
                        end_offset=UNDEFINED_EPOCH_OFFSET,
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
