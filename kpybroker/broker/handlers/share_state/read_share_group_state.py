"""ReadShareGroupState 0: the leader of a partition reads what its share groups have of it (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.share_messages import READ
from kpybroker.broker.handlers.share_state.serving import refused, serve
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, {0: "all of the state; fences earlier leaders"})


async def handle(
    broker: Broker, request: ReadShareGroupStateRequest, context: RequestContext
) -> ReadShareGroupStateResponse:
    """One result for each partition."""
    response: ReadShareGroupStateResponse = await serve(broker, READ, request, context)
    return response


def error_response(
    request: ReadShareGroupStateRequest, context: RequestContext, error: KafkaError
) -> ReadShareGroupStateResponse:
    """The error at each partition."""
    response: ReadShareGroupStateResponse = refused(READ, request, error)
    return response
