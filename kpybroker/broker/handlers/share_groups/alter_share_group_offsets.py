"""AlterShareGroupOffsets 0: move the start offsets of a share group that has no members (KIP-932).

Refused with UNSUPPORTED_VERSION until `share.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import require_group_id, serves_share_groups
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.share_group.values import AlteredShareOffsets, AlterShareOffsets
from kpybroker.core.topic_partition import PartitionKey, by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    0,
    0,
    {0: "start offsets (KIP-932); UNSUPPORTED_VERSION where `share.version` 1 is not finalized"},
)

TopicResponse = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
PartitionResponse = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


async def handle(
    broker: Broker, request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> AlterShareGroupOffsetsResponse:
    """The result for each partition; those that are refused at once are first, as in Kafka."""
    if not serves_share_groups(broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    budget = YieldBudget()
    errors: dict[PartitionKey, ErrorCode] = {}
    offsets: dict[PartitionKey, int] = {}
    for topic in request.topics:
        error = ErrorCode.NONE
        if not context.authorized(Operation.READ, ResourceType.TOPIC, topic.topic_name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not broker.metadata.contains(topic.topic_name):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for partition in topic.partitions:
            await budget.spend()
            key = (topic.topic_name, partition.partition_index)
            if error is ErrorCode.NONE:
                offsets[key] = partition.start_offset
            else:
                errors[key] = error
    require_group_id(request.group_id)
    altered: AlteredShareOffsets = await broker.groups.ask(AlterShareOffsets(request.group_id, offsets, context.owner))
    if altered.error is not ErrorCode.NONE:
        raise KafkaError(altered.error, altered.message or altered.error.message)
    results = errors | {key: altered.errors.get(key, ErrorCode.NONE) for key in offsets}
    return AlterShareGroupOffsetsResponse(
        responses=[
            TopicResponse(
                topic_name=name,
                topic_id=broker.metadata.topic_id(name),
                partitions=[_partition(index, code) for index, code in codes],
            )
            for name, codes in by_topic(results.items()).items()
        ]
    )


def _partition(index: int, code: ErrorCode) -> PartitionResponse:
    message = None if code is ErrorCode.NONE else code.message
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)


def error_response(
    request: AlterShareGroupOffsetsRequest, context: RequestContext, error: KafkaError
) -> AlterShareGroupOffsetsResponse:
    """The error at the top of the response."""
    return AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
