"""LeaveGroup 0-5: members leave, or an administrator removes static ones by their instance ids.

Until version 2 one member leaves, and its error is the response's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from kpybroker.broker.handlers.groups.checks import require_group_id
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, listed
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import Leave, LeaveResult, LeavingMember
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.LEAVE_GROUP,
    0,
    5,
    {
        0: "one member",
        1: "throttle time",
        3: "several members, static ones too (KIP-345)",
        4: "flexible",
        5: "the client's reason (KIP-800)",
    },
)

SEVERAL_MEMBERS_FROM = 3
MEMBERS_AT_ONCE = 10_000


async def handle(broker: Broker, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """Remove each member from the group."""
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    require_group_id(request.group_id)
    budget = YieldBudget()
    if context.api_version >= SEVERAL_MEMBERS_FROM:
        members = (LeavingMember(one.member_id, one.group_instance_id, one.reason) for one in request.members)
        leaving = tuple(await listed(members, budget))
    else:
        leaving = (LeavingMember(request.member_id),)
    await budget.spend(ELEMENT * len(leaving))
    result = await _leave(broker, request.group_id, leaving)
    if context.api_version < SEVERAL_MEMBERS_FROM:
        return LeaveGroupResponse(error_code=_only_error(result))
    await budget.spend(ELEMENT * len(leaving))
    responses = (
        LeaveGroupResponse.MemberResponse(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            error_code=error,
        )
        for member, error in result.members
    )
    return LeaveGroupResponse(error_code=result.error, members=await listed(responses, budget))


async def _leave(broker: Broker, group_id: str, leaving: tuple[LeavingMember, ...]) -> LeaveResult:
    """All of them, a part at a time: others run in between."""
    result: LeaveResult = await broker.groups.ask(Leave(group_id, leaving[:MEMBERS_AT_ONCE]))
    error, members = result.error, list(result.members)
    for start in range(MEMBERS_AT_ONCE, len(leaving), MEMBERS_AT_ONCE):
        await trio.lowlevel.checkpoint()
        more: LeaveResult = await broker.groups.ask(Leave(group_id, leaving[start : start + MEMBERS_AT_ONCE]))
        error = more.error if error is ErrorCode.NONE else error
        members += more.members
    return LeaveResult(error, tuple(members))


def _only_error(result: LeaveResult) -> ErrorCode:
    if result.error is not ErrorCode.NONE:
        return result.error  # there are no members then, if their departure could not be written
    ((_, error),) = result.members
    return error


def error_response(request: LeaveGroupRequest, context: RequestContext, error: KafkaError) -> LeaveGroupResponse:
    """The error at the top of the response."""
    return LeaveGroupResponse(error_code=error.code)
