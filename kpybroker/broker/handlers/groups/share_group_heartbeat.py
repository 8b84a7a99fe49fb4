"""ShareGroupHeartbeat 1, with which a client asks for a share group (KIP-932): always refused.

Kafka 3.9 does not have it. Without it some clients wait without a word: docs/decisions/group-protocols.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import own_text, unserved_protocol
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SHARE_GROUP_HEARTBEAT,
    1,
    1,
    {1: "always UNSUPPORTED_VERSION"},
    absent="share groups (KIP-932)",
)

CAUSE = "share groups (KIP-932) are not served"
FIX = "use a consumer group, with group.protocol=classic in the client"


async def handle(
    broker: Broker, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse:
    """Raises UNSUPPORTED_VERSION."""
    raise unserved_protocol(broker, context, request.group_id, CAUSE, FIX)


def error_response(
    request: ShareGroupHeartbeatRequest, context: RequestContext, error: KafkaError
) -> ShareGroupHeartbeatResponse:
    """The error at the top of the response."""
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=own_text(error))
