"""AllocateProducerIds 0 (between brokers): the controller hands a block of producer ids to a broker (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import AllocateProducerIds
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, {0: "a block of 1000 ids"})


async def handle(
    broker: Broker, request: AllocateProducerIdsRequest, context: RequestContext
) -> AllocateProducerIdsResponse:
    """Have the controller allocate a block of producer ids to the broker that asks."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    block = await broker.controller.ask(AllocateProducerIds(request.broker_id, request.broker_epoch))
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size)


def error_response(
    request: AllocateProducerIdsRequest, context: RequestContext, error: KafkaError
) -> AllocateProducerIdsResponse:
    """The error at the top of the response."""
    return AllocateProducerIdsResponse(error_code=error.code)
