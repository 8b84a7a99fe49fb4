"""What the five APIs of the share coordinator have in common: who may ask, and where results come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpybroker.broker.coordinators.share_messages import ShareApi
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.requests.context import RequestContext
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.share_coordinator.machine import StateRequest
from kpybroker.wire.errors import KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker


async def serve(broker: Broker, api: ShareApi, request: Any, context: RequestContext) -> Any:
    """The response, with a result for each partition; an empty one where a part of the request is empty, as in Kafka.

    Raises CLUSTER_AUTHORIZATION_FAILED.
    """
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    if not request.group_id or not request.topics or not all(topic.partitions for topic in request.topics):
        return api.response([])
    asked = api.asked(request)
    results = await run_to_end(broker.coordinators.share_states.ask(request.group_id, asked, is_summary=api.is_summary))
    return api.response(results)


def refused(api: ShareApi, request: Any, error: KafkaError) -> Any:
    """The error at each partition."""
    asked = (StateRequest(request.group_id, one, 0, api.is_summary) for one in api.asked(request))
    return api.response([one.result(error.code, error.message) for one in asked])
