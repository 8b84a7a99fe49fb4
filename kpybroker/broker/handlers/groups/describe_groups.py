"""DescribeGroups 0-6: state, protocol and members of classic groups.

One that does not exist, or is of another type, is Dead. Before version 6 that is no error (KIP-1043).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.handlers.groups.checks import group_operations
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.core.group.values import DescribedGroup, DescribeGroup
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.DESCRIBE_GROUPS,
    0,
    6,
    {
        0: "state, protocol, members",
        1: "throttle time",
        3: "authorized operations (KIP-430)",
        4: "group instance ids (KIP-345)",
        5: "flexible",
        6: "GROUP_ID_NOT_FOUND, with a text, for a group that does not exist or is not classic (KIP-1043)",
    },
)

AUTHORIZED_OPERATIONS_FROM = 3
NOT_FOUND_FROM = 6


async def handle(broker: Broker, request: DescribeGroupsRequest, context: RequestContext) -> DescribeGroupsResponse:
    """State and members of each group that this broker coordinates."""
    refused: list[DescribeGroupsResponse.DescribedGroup] = []
    described: list[DescribeGroupsResponse.DescribedGroup] = []
    shows_operations = context.api_version >= AUTHORIZED_OPERATIONS_FROM and request.include_authorized_operations
    budget = YieldBudget()
    for group_id in request.groups:
        await budget.spend()
        if not context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(_failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        group = await _describe(broker, group_id, context.api_version)
        if shows_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = group_operations(broker, context, group_id)
        described.append(group)
    return DescribeGroupsResponse(groups=refused + described)


async def _describe(broker: Broker, group_id: str, version: int) -> DescribeGroupsResponse.DescribedGroup:
    try:
        group: DescribedGroup = await broker.groups.ask(DescribeGroup(group_id))
    except KafkaError as error:
        return _failed(group_id, error.code)
    is_missing = group.not_found is not None and version >= NOT_FOUND_FROM
    return DescribeGroupsResponse.DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_missing else group.error,
        error_message=group.not_found if is_missing else None,
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
    )


def _failed(group_id: str, error: ErrorCode) -> DescribeGroupsResponse.DescribedGroup:
    return DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=error)


def error_response(
    request: DescribeGroupsRequest, context: RequestContext, error: KafkaError
) -> DescribeGroupsResponse:
    """The error at each group."""
    return DescribeGroupsResponse(groups=[_failed(group_id, error.code) for group_id in request.groups])
