"""SyncGroup 0-5: the leader sends the assignment, each member receives its part of it.

The response waits until the leader has synced and the assignment is committed. A coordinator that is still loading has
lost the rebalance that the request belongs to: the response is REBALANCE_IN_PROGRESS, and the member joins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import check_static_membership, require_group_id
from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import Sync, SyncResult
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.SYNC_GROUP,
    0,
    5,
    {
        0: "assignments in, assignment out",
        1: "throttle time",
        3: "static members (KIP-345)",
        4: "flexible",
        5: "protocol type and name, checked against the group's (KIP-559)",
    },
)

PROTOCOL_REQUIRED_FROM = 5


def handle(broker: Broker, request: SyncGroupRequest, context: RequestContext) -> Steps[SyncGroupResponse]:
    """The member's assignment, once the leader has sent it and it is committed."""
    check_static_membership(broker, request.group_instance_id)
    if context.api_version >= PROTOCOL_REQUIRED_FROM and None in (
        request.protocol_type,
        request.protocol_name,
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    require_group_id(request.group_id)
    sync = Sync(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={item.member_id: item.assignment for item in request.assignments},
        owner=context.owner,
    )
    try:
        result: SyncResult = yield from broker.groups.reply(sync, context, serves_rest=True)
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS) from error
        raise
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def error_response(request: SyncGroupRequest, context: RequestContext, error: KafkaError) -> SyncGroupResponse:
    """The error at the top of the response."""
    return SyncGroupResponse(error_code=error.code)
