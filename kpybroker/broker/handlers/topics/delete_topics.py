"""DeleteTopics 0-6: mark topics for deletion and wait until they are gone from this broker's metadata.

Version 6 takes ids as well as names (KIP-516); the response to an id whose name the client may not know is without the
name. With `delete.topic.enable=false` nothing is deleted: TOPIC_DELETION_DISABLED, INVALID_REQUEST before version 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.constants import ZERO_UUID
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

Result = DeleteTopicsResponse.DeletableTopicResult

LEDGER = Ledger(
    ApiKey.DELETE_TOPICS,
    0,
    6,
    {
        0: "by name",
        1: "throttle time",
        3: "TOPIC_DELETION_DISABLED",
        4: "flexible",
        5: "error message, THROTTLING_QUOTA_EXCEEDED (KIP-599)",
        6: "by topic id (KIP-516)",
    },
)

STRICT_FROM = 5
"""From this version on, what exceeds the client's quota is refused; before it, the client only has to wait."""


async def handle(broker: Broker, request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    """Mark each topic for deletion, and wait until it is gone from the metadata."""
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if not broker.config.get_bool("delete.topic.enable"):
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if context.api_version >= 3 else ErrorCode.INVALID_REQUEST
        raise KafkaError(disabled)
    results, budget = [], YieldBudget()
    to_delete: dict[str, list[Result]] = {}
    for asked_name, topic_id in _asked_for(request):
        result = _resolve(broker, asked_name, topic_id)
        results.append(result)
        await budget.spend()
        code = _refusal(broker, context, result)
        result.error_code = code
        if code is ErrorCode.NONE and result.name is not None:
            to_delete.setdefault(result.name, []).append(result)
    codes = await broker.topics.delete_topics(to_delete, request.timeout_ms, context.mutations(STRICT_FROM))
    for name, code in codes.items():
        for result in to_delete[name]:
            result.error_code = code
    return DeleteTopicsResponse(responses=results)


def _asked_for(request: DeleteTopicsRequest) -> list[tuple[str | None, bytes]]:
    asked: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    return asked + [(topic.name, topic.topic_id) for topic in request.topics]


def _resolve(broker: Broker, name: str | None, topic_id: bytes) -> Result:
    if topic_id == ZERO_UUID:
        return Result(name=name, topic_id=topic_id)
    if name is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic name and topic ID can not both be specified.")
    return Result(name=broker.controller.machine.parts.context.topic_names.get(topic_id), topic_id=topic_id)


def _refusal(broker: Broker, context: RequestContext, result: Result) -> ErrorCode:
    name = result.name
    by_id = result.topic_id != ZERO_UUID
    if name is None:
        # neither name nor id: nothing that anyone may describe
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if by_id and not context.authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
        # The id is no secret, the name is.
        result.name = None
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if not context.authorized(Operation.DELETE, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if broker.metadata.contains(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def error_response(request: DeleteTopicsRequest, context: RequestContext, error: KafkaError) -> DeleteTopicsResponse:
    """The error at each topic."""
    return DeleteTopicsResponse(
        responses=[
            Result(name=name, topic_id=topic_id, error_code=error.code) for name, topic_id in _asked_for(request)
        ]
    )
