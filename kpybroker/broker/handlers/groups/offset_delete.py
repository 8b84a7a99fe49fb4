"""OffsetDelete 0: forget a group's offsets in partitions that none of its members is subscribed to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import known_partitions, require_group_id
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import DeleteOffsets, DeleteOffsetsResult
from kpybroker.core.topic_partition import by_topic
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.OFFSET_DELETE, 0, 0, {0: "offsets of single partitions (KIP-496)"})

TopicResponse = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResponse = OffsetDeleteResponse.OffsetDeleteResponsePartition


async def handle(broker: Broker, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    """Delete the offsets of each partition that no member is subscribed to."""
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    known, errors = await known_partitions(broker, context, request.topics)
    require_group_id(request.group_id)
    result: DeleteOffsetsResult = await broker.groups.ask(
        DeleteOffsets(request.group_id, tuple(known), broker.groups.keeps_groups_without_offsets)
    )
    if result.error is not ErrorCode.NONE:
        raise KafkaError(result.error)
    topics = by_topic((errors | dict(result.errors)).items())
    return OffsetDeleteResponse(
        topics=[
            TopicResponse(
                name=name,
                partitions=[PartitionResponse(partition_index=index, error_code=code) for index, code in codes],
            )
            for name, codes in topics.items()
        ]
    )


def error_response(request: OffsetDeleteRequest, context: RequestContext, error: KafkaError) -> OffsetDeleteResponse:
    """The error at the top of the response."""
    return OffsetDeleteResponse(error_code=error.code)
