"""ReadShareGroupStateSummary 0-1: start offsets of share partitions, for descriptions (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.coordinators.share_messages import SUMMARY
from kpybroker.broker.handlers.share_state.serving import refused, serve
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, {0: "start offset and epochs", 1: "delivery complete count (KIP-1226)"}
)


async def handle(
    broker: Broker, request: ReadShareGroupStateSummaryRequest, context: RequestContext
) -> ReadShareGroupStateSummaryResponse:
    """One result for each partition."""
    response: ReadShareGroupStateSummaryResponse = await serve(broker, SUMMARY, request, context)
    return response


def error_response(
    request: ReadShareGroupStateSummaryRequest, context: RequestContext, error: KafkaError
) -> ReadShareGroupStateSummaryResponse:
    """The error at each partition."""
    response: ReadShareGroupStateSummaryResponse = refused(SUMMARY, request, error)
    return response
