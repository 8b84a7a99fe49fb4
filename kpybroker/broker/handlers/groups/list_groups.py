"""ListGroups 0-5: the groups that this broker coordinates.

Without DESCRIBE on the cluster a client sees the groups that it may describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.broker.requests.context import RequestContext
from kpybroker.broker.requests.ledger import Ledger
from kpybroker.core.authorizer import Operation, ResourceType
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import KafkaError
from kpybroker.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LEDGER = Ledger(
    ApiKey.LIST_GROUPS,
    0,
    5,
    {
        0: "group ids and protocol types",
        1: "throttle time",
        3: "flexible",
        4: "states, and a filter by them (KIP-518)",
        5: "types, and a filter by them (KIP-848)",
    },
)


async def handle(broker: Broker, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """The groups in the requested states and types that the client may describe."""
    error, groups = broker.groups.list_groups(request.states_filter, request.types_filter)
    if not context.authorized(Operation.DESCRIBE, ResourceType.CLUSTER, log_denied=False):
        groups = [
            group
            for group in groups
            if context.authorized(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, log_denied=False)
        ]
    return ListGroupsResponse(
        error_code=error,
        groups=[
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=group.group_type,
            )
            for group in groups
        ],
    )


def error_response(request: ListGroupsRequest, context: RequestContext, error: KafkaError) -> ListGroupsResponse:
    """The error at the top of the response."""
    return ListGroupsResponse(error_code=error.code)
