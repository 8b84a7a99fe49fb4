"""DeleteGroups 0-2: forget groups that have no members, with their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import DeleteGroup
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(ApiKey.DELETE_GROUPS, 0, 2, {0: "groups and their offsets", 1: "throttle first", 2: "flexible"})


async def handle(broker: Broker, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    """Delete each group that has no members; each succeeds or fails by itself."""
    deleted: list[DeleteGroupsResponse.DeletableGroupResult] = []
    refused: list[DeleteGroupsResponse.DeletableGroupResult] = []
    budget = YieldBudget()
    for group_id in dict.fromkeys(request.groups_names):
        await budget.spend()
        if context.authorized(Operation.DELETE, ResourceType.GROUP, group_id):
            deleted.append(_result(group_id, await _delete(broker, group_id)))
        else:
            refused.append(_result(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return DeleteGroupsResponse(results=deleted + refused)


async def _delete(broker: Broker, group_id: str) -> ErrorCode:
    try:
        result: ErrorCode = await broker.groups.ask(DeleteGroup(group_id))
    except KafkaError as error:
        return error.code
    return result


def _result(group_id: str, error: ErrorCode) -> DeleteGroupsResponse.DeletableGroupResult:
    return DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=error)


def error_response(request: DeleteGroupsRequest, context: RequestContext, error: KafkaError) -> DeleteGroupsResponse:
    """The error at each group."""
    return DeleteGroupsResponse(results=[_result(group_id, error.code) for group_id in request.groups_names])
