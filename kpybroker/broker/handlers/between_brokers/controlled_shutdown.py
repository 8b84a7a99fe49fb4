"""ControlledShutdown 0-3 (between brokers): before it stops, a broker has the controller move its leaderships away.

The response names the partitions that it still leads because no other replica can; while there are any, the broker
asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.controller.events import ControlledShutdown
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CONTROLLED_SHUTDOWN,
    0,
    3,
    {
        0: "the partitions still led; no client id in the header",
        1: "client id",
        2: "broker epoch (KIP-380)",
        3: "flexible",
    },
)


async def handle(
    broker: Broker, request: ControlledShutdownRequest, context: RequestContext
) -> ControlledShutdownResponse:
    """Have the controller move leaderships away from a broker that stops."""
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    remaining = await broker.controller.ask(ControlledShutdown(request.broker_id, request.broker_epoch))
    return ControlledShutdownResponse(
        remaining_partitions=[
            ControlledShutdownResponse.RemainingPartition(topic_name=topic, partition_index=partition)
            for topic, partition in remaining
        ]
    )


def error_response(
    request: ControlledShutdownRequest, context: RequestContext, error: KafkaError
) -> ControlledShutdownResponse:
    """The error at the top of the response."""
    return ControlledShutdownResponse(error_code=error.code)
