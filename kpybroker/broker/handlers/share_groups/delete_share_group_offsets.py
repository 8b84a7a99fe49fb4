"""DeleteShareGroupOffsets 0: forget where a share group without members is in some topics (KIP-932).

Refused with UNSUPPORTED_VERSION until `share.version` 1 is finalized, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import require_group_id, serves_share_groups
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.share_group.values import DeletedShareOffsets, DeletedTopicOffsets, DeleteShareOffsets
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    0,
    0,
    {0: "topics of an empty share group (KIP-932); UNSUPPORTED_VERSION where `share.version` 1 is not finalized"},
)


async def handle(
    broker: Broker, request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> DeleteShareGroupOffsetsResponse:
    """The result for each topic; those that the client may not read are first, as in Kafka."""
    if not serves_share_groups(broker):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    budget = YieldBudget()
    refused: list[DeletedTopicOffsets] = []
    names: list[str] = []
    for topic in request.topics:
        await budget.spend()
        if context.authorized(Operation.READ, ResourceType.TOPIC, topic.topic_name):
            names.append(topic.topic_name)
        else:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(DeletedTopicOffsets(topic.topic_name, ZERO_UUID, error, error.message))
    require_group_id(request.group_id)
    deleted: DeletedShareOffsets = await broker.groups.ask(DeleteShareOffsets(request.group_id, tuple(names)))
    if deleted.error is not ErrorCode.NONE:
        raise KafkaError(deleted.error, deleted.message or deleted.error.message)
    return DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=topic.topic_id,
                error_code=topic.error,
                error_message=topic.message,
            )
            for topic in (*refused, *deleted.topics)
        ]
    )


def error_response(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext, error: KafkaError
) -> DeleteShareGroupOffsetsResponse:
    """The error at the top of the response."""
    return DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.message)
