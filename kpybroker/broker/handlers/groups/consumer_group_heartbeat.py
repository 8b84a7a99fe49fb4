"""ConsumerGroupHeartbeat 0-1, with which a client asks for the consumer group protocol (KIP-848): always refused.

Kafka 3.9 in ZooKeeper mode refuses version 0. Clients of today ask with version 1, and without it some wait without a
word: docs/decisions/group-protocols.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import unserved_protocol
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    0,
    1,
    {0: "always UNSUPPORTED_VERSION, as Kafka 3.9 in ZooKeeper mode", 1: "the same"},
    absent="the consumer group protocol (KIP-848)",
)

CAUSE = "the consumer group protocol (KIP-848) is not served"
FIX = "set group.protocol=classic in the client"


async def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """Raises UNSUPPORTED_VERSION."""
    raise unserved_protocol(broker, context, request.group_id, CAUSE, FIX)


def error_response(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    """The error at the top of the response."""
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
