"""AlterPartition 0-3 (between brokers): a leader asks the controller to change its ISR (KIP-497)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import AlterPartitionReceived
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.ALTER_PARTITION,
    0,
    3,
    {
        0: "the new ISR of each partition, over the partition epoch it was decided at",
        1: "leader recovery state (KIP-704)",
        2: "topic ids; INELIGIBLE_REPLICA (KIP-841)",
        3: "broker epochs of the ISR's members: read and passed over, for ZooKeeper mode does not use them (KIP-903)",
    },
)


async def handle(broker: Broker, request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """Have the controller change the leader's ISR of each partition."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    response: AlterPartitionResponse = await broker.controller.ask(AlterPartitionReceived(request, context.api_version))
    return response


def error_response(
    request: AlterPartitionRequest, context: RequestContext, error: KafkaError
) -> AlterPartitionResponse:
    """The error at the top of the response."""
    return AlterPartitionResponse(error_code=error.code)
