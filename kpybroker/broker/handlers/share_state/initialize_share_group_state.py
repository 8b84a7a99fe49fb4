"""InitializeShareGroupState 0: the group coordinator begins the state of share partitions (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.share_messages import INITIALIZE
from kpybroker.broker.handlers.share_state.serving import refused, serve
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, {0: "begins the state of share partitions"})


async def handle(
    broker: Broker, request: InitializeShareGroupStateRequest, context: RequestContext
) -> InitializeShareGroupStateResponse:
    """One result for each partition."""
    response: InitializeShareGroupStateResponse = await serve(broker, INITIALIZE, request, context)
    return response


def error_response(
    request: InitializeShareGroupStateRequest, context: RequestContext, error: KafkaError
) -> InitializeShareGroupStateResponse:
    """The error at each partition."""
    response: InitializeShareGroupStateResponse = refused(INITIALIZE, request, error)
    return response
