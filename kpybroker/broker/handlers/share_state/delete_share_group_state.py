"""DeleteShareGroupState 0: the group coordinator forgets the state of share partitions (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.share_messages import DELETE
from kpybroker.broker.handlers.share_state.serving import refused, serve
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, {0: "forgets the state of share partitions"})


async def handle(
    broker: Broker, request: DeleteShareGroupStateRequest, context: RequestContext
) -> DeleteShareGroupStateResponse:
    """One result for each partition."""
    response: DeleteShareGroupStateResponse = await serve(broker, DELETE, request, context)
    return response


def error_response(
    request: DeleteShareGroupStateRequest, context: RequestContext, error: KafkaError
) -> DeleteShareGroupStateResponse:
    """The error at each partition."""
    response: DeleteShareGroupStateResponse = refused(DELETE, request, error)
    return response
