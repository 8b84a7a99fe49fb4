"""WriteShareGroupState 0-1: the leader of a partition writes what has changed (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.share_messages import WRITE
from kpybroker.broker.handlers.share_state.serving import refused, serve
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, {0: "start offset and batches", 1: "delivery complete count (KIP-1226)"}
)


async def handle(
    broker: Broker, request: WriteShareGroupStateRequest, context: RequestContext
) -> WriteShareGroupStateResponse:
    """One result for each partition."""
    response: WriteShareGroupStateResponse = await serve(broker, WRITE, request, context)
    return response


def error_response(
    request: WriteShareGroupStateRequest, context: RequestContext, error: KafkaError
) -> WriteShareGroupStateResponse:
    """The error at each partition."""
    response: WriteShareGroupStateResponse = refused(WRITE, request, error)
    return response
