"""Heartbeat 0-4: a member is alive, and learns of a rebalance.

While the coordinator loads, every heartbeat succeeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import check_static_membership, require_group_id
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import Heartbeat
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.HEARTBEAT,
    0,
    4,
    {0: "a member's heartbeat", 1: "throttle time", 3: "static members (KIP-345)", 4: "flexible"},
)


def handle(broker: Broker, request: HeartbeatRequest, context: RequestContext) -> Steps[HeartbeatResponse]:
    """Extend the member's session; the response reports a rebalance."""
    check_static_membership(broker, request.group_instance_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    require_group_id(request.group_id)
    heartbeat = Heartbeat(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    try:
        result: ErrorCode = yield from broker.groups.reply(heartbeat, context)
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        raise
    return HeartbeatResponse(error_code=result)


def error_response(request: HeartbeatRequest, context: RequestContext, error: KafkaError) -> HeartbeatResponse:
    """The error at the top of the response."""
    return HeartbeatResponse(error_code=error.code)
