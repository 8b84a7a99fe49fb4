"""CreatePartitions 0-3: more partitions for topics that exist.

A topic named twice is refused as a whole. The response waits until the new partitions have leaders, or times out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kpybroker.broker.cluster.topic_admin import NewPartitions
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import ApiError
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CREATE_PARTITIONS,
    0,
    3,
    {0: "count, assignments, validate_only", 2: "flexible", 3: "THROTTLING_QUOTA_EXCEEDED (KIP-599)"},
)

DUPLICATE = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
UNAUTHORIZED = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
QUEUED_FOR_DELETION = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")

STRICT_FROM = 3
"""From this version on, what exceeds the client's quota is refused; before it, the client only has to wait."""


async def handle(broker: Broker, request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    """Add partitions to each topic, and wait until they have leaders."""
    if not broker.controller.is_active:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    results: dict[str, ApiError] = {}
    wanted = []
    times = Counter(topic.name for topic in request.topics)
    queued_for_deletion = broker.controller.machine.parts.context.topics_to_be_deleted
    budget = YieldBudget()
    await budget.spend(ELEMENT * len(times))
    for topic in request.topics:
        await budget.spend()
        if times[topic.name] > 1:
            results[topic.name] = DUPLICATE
        elif not context.authorized(Operation.ALTER, ResourceType.TOPIC, topic.name):
            results[topic.name] = UNAUTHORIZED
        elif topic.name in queued_for_deletion:
            results[topic.name] = QUEUED_FOR_DELETION
        else:
            assignments = None if topic.assignments is None else [a.broker_ids for a in topic.assignments]
            wanted.append(NewPartitions(topic.name, topic.count, assignments))
    results |= await broker.topics.create_partitions(
        wanted,
        request.timeout_ms,
        validate_only=request.validate_only,
        mutations=context.mutations(STRICT_FROM),
    )
    await budget.spend(ELEMENT * len(results))
    return CreatePartitionsResponse(results=await listed(_results(results), budget))


def _results(results: dict[str, ApiError]) -> Iterator[CreatePartitionsResponse.CreatePartitionsTopicResult]:
    for name, error in results.items():
        yield CreatePartitionsResponse.CreatePartitionsTopicResult(
            name=name, error_code=error.code, error_message=error.message
        )


def error_response(
    request: CreatePartitionsRequest, context: RequestContext, error: KafkaError
) -> CreatePartitionsResponse:
    """The error at each topic."""
    api_error = ApiError(error.code)
    return CreatePartitionsResponse(results=list(_results({topic.name: api_error for topic in request.topics})))
