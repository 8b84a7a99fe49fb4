"""DescribeProducers 0: the producers that partitions hosted here remember, with their open transactions (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.topic_names import invalid_reason
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.DESCRIBE_PRODUCERS, 0, 0, {0: "epoch, last sequence and timestamp, open transaction"})

Partition = DescribeProducersResponse.PartitionResponse


async def handle(
    broker: Broker, request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    """The active producers of each partition that this broker leads."""
    response, budget = DescribeProducersResponse(), YieldBudget()
    for topic in request.topics:
        await budget.spend()
        refusal = _refusal(broker, context, topic.name)
        partitions = []
        for index in topic.partition_indexes:
            await budget.spend()
            if refusal is not None:
                partitions.append(_failed(index, refusal, refusal.message))
                continue
            try:
                partitions.append(_describe(broker, topic.name, index))
            except KafkaError as error:
                partitions.append(_failed(index, error, None))
        response.topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=partitions))
    return response


def _refusal(broker: Broker, context: RequestContext, topic: str) -> KafkaError | None:
    reason = invalid_reason(topic)
    if reason is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
    if not context.authorized(Operation.READ, ResourceType.TOPIC, topic):
        return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not broker.metadata.contains(topic):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _describe(broker: Broker, topic: str, index: int) -> Partition:
    log = broker.replicas.hosted(topic, index).online_log()
    return Partition(
        partition_index=index,
        active_producers=[
            DescribeProducersResponse.ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in log.producers.producers.values()
        ],
    )


def _failed(index: int, error: KafkaError, message: str | None) -> Partition:
    return Partition(partition_index=index, error_code=error.code, error_message=message)


def error_response(
    request: DescribeProducersRequest, context: RequestContext, error: KafkaError
) -> DescribeProducersResponse:
    """The error with its message at each partition."""
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[_failed(index, error, error.message) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
